// SPDX-License-Identifier: Apache-2.0
// Limits of the cost of a grammar and of matching a text. Each has a separate Error.
#ifndef OUTRIDER_GRAMMAR_LIMITS_H_
#define OUTRIDER_GRAMMAR_LIMITS_H_

#include <cstddef>
#include <cstdint>

namespace outrider {

// Text of a grammar. Schemas of published interfaces have some tens of kilobytes.
inline constexpr std::size_t kLongestGrammar_bytes = std::size_t{1} << 20;
// Depth of groups within groups, or schemas within schemas, which is the recursion depth of reading
// and compiling.
inline constexpr int kDeepestGrammar = 200;
inline constexpr std::size_t kMaxRules = 20'000;
// Parts of a schema's text (values, and 16 bytes of its words each) that are copied and compared
// while references and combinations are merged: some seconds in the worst case.
inline constexpr std::int64_t kMaxSchemaWork = 500'000;
// Bytes of a key that are compared with a schema's names.
inline constexpr std::size_t kLongestToldApart_bytes = 256;
// Positions between two bytes of the text, 24 bytes each.
inline constexpr std::size_t kMaxPositions = 400'000;
// Repetitions are counted, so a large bound costs nothing; this limit keeps counts from
// overflowing.
inline constexpr int kMaxRepeats = 1'000'000'000;

// Rules that a text is in at the same time. JSON takes three for an array and its item.
inline constexpr int kDeepestNesting = 2000;
// Ways of reading that one byte may advance: the cost of an ambiguous grammar.
inline constexpr std::int64_t kMaxSteps = 100'000;
// The same for all texts that a mask tries: some tenths of a second.
inline constexpr std::int64_t kMaxMaskSteps = 5'000'000;
// States that a matcher holds before its current text moves to a new matcher, and its limits until
// then.
inline constexpr std::size_t kManyStates = 1 << 15;
inline constexpr std::size_t kMaxStates = 1 << 18;
inline constexpr std::size_t kMaxFrameEntries = 1 << 22;
// Masks that are kept of each kind, 19 kilobytes each for a vocabulary of 150,000.
inline constexpr std::size_t kMaxMasks = 256;
// Longer tokens are few: their part of a mask is computed for each state, while states that differ
// only for them share the rest.
inline constexpr std::size_t kLongestShortToken_bytes = 12;
// Grammars whose matchers a batch keeps for later requests.
inline constexpr std::size_t kMaxMatchers = 8;

}  // namespace outrider

#endif  // OUTRIDER_GRAMMAR_LIMITS_H_
