// What a grammar, and a text that it judges, may cost at most. Each is told by an Error of its own.
#ifndef OUTRIDER_GRAMMAR_LIMITS_H_
#define OUTRIDER_GRAMMAR_LIMITS_H_

#include <cstddef>
#include <cstdint>

namespace outrider {

// A grammar's text. Schemas of published interfaces have some tens of kilobytes.
inline constexpr std::size_t kLongestGrammar_bytes = std::size_t{1} << 20;
// Groups within groups, schemas within schemas: reading and compiling call themselves that deep.
inline constexpr int kDeepestGrammar = 200;
inline constexpr std::size_t kMostRules = 20'000;
// Parts of a schema's text (values, and 16 bytes of its words each) that are copied and compared
// while references and combinations are put into one: some seconds at the worst.
inline constexpr std::int64_t kMostSchemaWork = 500'000;
// Bytes of a key by which it is told from a schema's names.
inline constexpr std::size_t kLongestToldApart_bytes = 256;
// Positions between two bytes of the text, 24 bytes each.
inline constexpr std::size_t kMostPositions = 400'000;
// Repetitions are counted, so that a large bound costs nothing; this is so that counts fit.
inline constexpr int kMostRepeats = 1'000'000'000;

// Rules that a text is in at once. JSON takes three for an array and its item.
inline constexpr int kDeepestNesting = 2000;
// Ways to read a text that are followed by one byte: what an ambiguous grammar may cost.
inline constexpr std::int64_t kMostSteps = 100'000;
// The same for all texts that a mask has to try, some tenths of a second.
inline constexpr std::int64_t kMostMaskSteps = 5'000'000;
// What a matcher remembers before the text it stands at is taken over by a fresh one, and between
// two such moments.
inline constexpr std::size_t kManyStates = 1 << 15;
inline constexpr std::size_t kMostStates = 1 << 18;
inline constexpr std::size_t kMostFrameEntries = 1 << 22;
// Masks that are kept of each kind, 19 kilobytes each for a vocabulary of 150,000.
inline constexpr std::size_t kMostMasks = 256;
// Longer tokens are few: what they add to a mask is looked up anew for states that the others do
// not tell apart.
inline constexpr std::size_t kLongestShortToken_bytes = 12;
// Grammars whose matchers a batch keeps for later requests.
inline constexpr std::size_t kMostMatchers = 8;

}  // namespace outrider

#endif  // OUTRIDER_GRAMMAR_LIMITS_H_
