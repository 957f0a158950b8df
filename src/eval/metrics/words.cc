// SPDX-License-Identifier: Apache-2.0
#include "eval/metrics/words.h"

#include <utf8proc.h>

#include "tokenizer/texts/utf8.h"

namespace outrider::eval {

std::u32string characters(std::string_view text) {
  std::string repaired;
  if (!is_valid_utf8(text)) {
    repaired = repair_utf8(text);
    text = repaired;
  }
  std::u32string result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    result += point.value;
    at += static_cast<std::size_t>(point.n_bytes);
  }
  return result;
}

std::string to_utf8(std::u32string_view characters) {
  std::string text;
  text.reserve(characters.size());
  for (const char32_t value : characters) append_utf8(value, text);
  return text;
}

bool is_space(char32_t value) { return is_white_space(value) || (value >= 0x1C && value <= 0x1F); }

std::vector<std::u32string> split_words(std::u32string_view text) {
  std::vector<std::u32string> words;
  std::size_t at = 0;
  while (at < text.size()) {
    if (is_space(text[at])) {
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < text.size() && !is_space(text[end])) ++end;
    words.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

std::u32string_view strip_right(std::u32string_view text) {
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

std::u32string_view strip(std::u32string_view text) {
  text = strip_right(text);
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  return text;
}

std::u32string lower_case(std::u32string_view text) {
  std::u32string lower;
  lower.reserve(text.size());
  for (const char32_t value : text) {
    if (value == 0x130) {
      lower += U"i\u0307";
    } else {
      lower += static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(value)));
    }
  }
  return lower;
}

bool is_word_character_in_python(char32_t value) {
  if (value == U'_') return true;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(value))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return true;
    default:
      return false;
  }
}

}  // namespace outrider::eval
