// SPDX-License-Identifier: Apache-2.0
// The character classes that cutting patterns use, as PCRE2 defines them with its version of
// Unicode, so that a hand-written scanner and a compiled pattern agree. Thread-safe.
#ifndef OUTRIDER_TOKENIZER_PATTERNS_CHARACTER_CLASS_H_
#define OUTRIDER_TOKENIZER_PATTERNS_CHARACTER_CLASS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace outrider {

// Bits of the classes; a character has the bits of all its classes.
enum CharacterClass : std::uint16_t {
  kLetter = 1,     // \p{L}
  kCapital = 2,    // \p{Lu}, \p{Lt}; letters too
  kSmall = 4,      // \p{Ll}; letters too
  kMark = 8,       // \p{M}
  kNumber = 16,    // \p{N}
  kDigit = 32,     // \p{Nd}; numbers too
  kBlank = 64,     // \s, that is White_Space
  kLineEnd = 128,  // \r and \n; blanks too
  kInWord = 256,   // \w
};

struct ClassifiedCharacter {
  std::uint16_t classes;
  std::uint16_t n_bytes;
};

constexpr std::array<std::uint16_t, 128> make_ascii_classes() {
  std::array<std::uint16_t, 128> classes{};
  for (std::size_t c = 'A'; c <= 'Z'; ++c) {
    classes[c] = kLetter | kCapital | kInWord;
    classes[c | 0x20] = kLetter | kSmall | kInWord;
  }
  for (std::size_t c = '0'; c <= '9'; ++c) classes[c] = kNumber | kDigit | kInWord;
  for (std::size_t c = '\t'; c <= '\r'; ++c) classes[c] = kBlank;
  classes['\r'] = classes['\n'] = kBlank | kLineEnd;
  classes[' '] = kBlank;
  classes['_'] = kInWord;
  return classes;
}
inline constexpr std::array<std::uint16_t, 128> kAsciiClasses = make_ascii_classes();

// The character at text[at], which is not ASCII. The first call in a process takes some
// milliseconds to query PCRE2 about all characters.
ClassifiedCharacter classify_beyond_ascii(std::string_view text, std::size_t at);

// The character at text[at]; text must be well-formed and `at` the start of a character.
inline ClassifiedCharacter classify(std::string_view text, std::size_t at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  if (byte < 0x80) return {kAsciiClasses[byte], 1};
  return classify_beyond_ascii(text, at);
}

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_PATTERNS_CHARACTER_CLASS_H_
