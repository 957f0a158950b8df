// SPDX-License-Identifier: Apache-2.0
// Sets of characters, and their bytes in UTF-8.
#ifndef OUTRIDER_GRAMMAR_CODE_POINTS_H_
#define OUTRIDER_GRAMMAR_CODE_POINTS_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace outrider {

inline constexpr char32_t kLastCodePoint = 0x10FFFF;

struct SpelledCharacter {
  char32_t value = 0;
  std::size_t n_bytes = 0;
};
// The character at text[at]; text must be UTF-8 and `at` the start of a character.
SpelledCharacter character_at(std::string_view text, std::size_t at);
void append_character(char32_t value, std::string& out);

struct CodePointRange {  // both ends inclusive
  char32_t first = 0;
  char32_t last = 0;
  bool operator==(const CodePointRange&) const = default;
};

// A set of characters. Surrogates are not characters: add() leaves them out.
class CodePoints {
 public:
  CodePoints() = default;
  CodePoints(std::initializer_list<CodePointRange> ranges);
  static CodePoints all() { return {{0, kLastCodePoint}}; }

  void add(CodePointRange range);
  void add(const CodePoints& others);
  CodePoints complement() const;
  CodePoints less(const CodePoints& others) const;
  CodePoints common(const CodePoints& others) const;

  bool contains(char32_t value) const;
  bool empty() const { return ranges_.empty(); }
  const std::vector<CodePointRange>& ranges() const { return ranges_; }  // ascending, disjoint

 private:
  std::vector<CodePointRange> ranges_;
};

struct ByteRange {  // both ends inclusive
  std::uint8_t first = 0;
  std::uint8_t last = 0;
  bool operator==(const ByteRange&) const = default;
};

// One to four ranges; any bytes from them, in order, encode a character. Every character of the set
// has one sequence.
using ByteSequence = std::vector<ByteRange>;
std::vector<ByteSequence> utf8_sequences(const CodePoints& set);

}  // namespace outrider

#endif  // OUTRIDER_GRAMMAR_CODE_POINTS_H_
