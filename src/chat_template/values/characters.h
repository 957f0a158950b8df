// SPDX-License-Identifier: Apache-2.0
// Characters of UTF-8 texts as in Python's str: code points, their case and their classes. Texts
// must be well-formed. All functions are pure and thread-safe.
#ifndef OUTRIDER_CHAT_TEMPLATE_VALUES_CHARACTERS_H_
#define OUTRIDER_CHAT_TEMPLATE_VALUES_CHARACTERS_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace outrider::jinja {

struct Character {
  char32_t value;
  std::size_t n_bytes;
};
Character character_at(std::string_view text, std::size_t at);
void append_character(char32_t value, std::string& out);
std::u32string code_points(std::string_view text);
std::string utf8_of(std::u32string_view characters);
// The offset of the first byte that is not valid UTF-8; npos if there is none.
std::size_t find_bad_byte(std::string_view text);

bool is_space(char32_t c);
bool is_alphabetic(char32_t c);
bool is_decimal(char32_t c);
bool is_digit(char32_t c);
bool is_numeric(char32_t c);
bool is_upper(char32_t c);
bool is_lower(char32_t c);
bool is_title(char32_t c);
bool is_cased(char32_t c);
// Whether repr shows it unescaped.
bool is_printable(char32_t c);

// One character may become several ("ß", "SS").
std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);
std::string to_title(std::string_view text);    // str.title: words are runs of cased letters
std::string capitalize(std::string_view text);  // the first character; the others become lower case
std::string swap_case(std::string_view text);
void append_upper(char32_t c, std::string& out);
void append_title(char32_t c, std::string& out);

// `chars` empty: white space.
enum class Side { left, right, both };
std::string_view strip(std::string_view text, Side side);
std::string_view strip(std::string_view text, std::string_view chars, Side side);

// Lines, without their ends unless keep_ends.
std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends);

}  // namespace outrider::jinja

#endif  // OUTRIDER_CHAT_TEMPLATE_VALUES_CHARACTERS_H_
