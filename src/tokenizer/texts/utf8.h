// SPDX-License-Identifier: Apache-2.0
// UTF-8: validation, repair and iteration, and some character classes for tokenizers. A "bad
// subsequence" is a maximal one in the sense of the Unicode Standard, section 3.9: the longest
// start of a well-formed character, or one byte if there is none. All functions are pure and
// thread-safe.
#ifndef OUTRIDER_TOKENIZER_TEXTS_UTF8_H_
#define OUTRIDER_TOKENIZER_TEXTS_UTF8_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace outrider {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD
inline constexpr std::string_view kLowerBlock = "\xE2\x96\x81";  // U+2581, written for ' '

struct Utf8Scan {
  std::size_t n_valid;  // length of the longest well-formed prefix, bytes
  std::size_t n_bad;    // length of the bad subsequence after it, bytes; 0: none
  bool unfinished;      // the bad subsequence ends the text and more bytes could complete it
};
Utf8Scan scan_utf8(std::string_view text);

inline bool is_valid_utf8(std::string_view text) { return scan_utf8(text).n_bad == 0; }
// Throws Error(operation, object, ...) with the first bad byte and its line, if there is one.
void require_utf8(std::string_view text, std::string_view operation, std::string_view object);
// Each bad subsequence becomes one U+FFFD.
std::string repair_utf8(std::string_view text);

struct CodePoint {
  char32_t value;
  int n_bytes;
};
// The character at text[at]; text must be well-formed and `at` the start of a character.
inline CodePoint code_point_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return static_cast<char32_t>(static_cast<unsigned char>(text[at + i]));
  };
  const char32_t first = byte(0);
  if (first < 0x80) return {first, 1};
  if (first < 0xE0) return {(first & 0x1F) << 6 | (byte(1) & 0x3F), 2};
  if (first < 0xF0) return {(first & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), 3};
  return {(first & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F),
          4};
}
// Where the last character of a non-empty well-formed text starts.
std::size_t last_character(std::string_view text);
void append_utf8(char32_t value, std::string& out);

bool is_white_space(char32_t value);  // the Unicode property White_Space
bool is_numeric(char32_t value);      // categories Nd, Nl, No
bool is_punctuation(char32_t value);  // categories P*, and all ASCII punctuation
bool is_mark(char32_t value);         // categories Mn, Mc, Me
// \w as in the Rust regex library: Alphabetic, M, Nd, Pc, Join_Control.
bool is_word_character(char32_t value);

// Whether `spelling` is well-formed and exactly one character.
bool is_one_character(std::string_view spelling);

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_TEXTS_UTF8_H_
