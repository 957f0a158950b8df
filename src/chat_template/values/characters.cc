// SPDX-License-Identifier: Apache-2.0
#include "chat_template/values/characters.h"

#include <utf8proc.h>

#include <algorithm>

namespace outrider::jinja {
namespace {

utf8proc_category_t category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

char32_t simple_lower(char32_t c) {
  return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
}
char32_t simple_upper(char32_t c) {
  return static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c)));
}
char32_t simple_title(char32_t c) {
  return static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c)));
}

// Letters whose upper case is several letters. (Without Armenian ones and Greek ones with several
// accents, which utf8proc maps one to one.)
struct Expansion {
  char32_t letter;
  std::string_view upper;
  std::string_view title;
};
constexpr Expansion kExpansions[] = {
    {0xDF, "SS", "Ss"},
    {0x149, "\xCA\xBCN", "\xCA\xBCN"},
    {0x1F0, "J\xCC\x8C", "J\xCC\x8C"},
    {0xFB00, "FF", "Ff"},
    {0xFB01, "FI", "Fi"},
    {0xFB02, "FL", "Fl"},
    {0xFB03, "FFI", "Ffi"},
    {0xFB04, "FFL", "Ffl"},
    {0xFB05, "ST", "St"},
    {0xFB06, "ST", "St"},
};

const Expansion* find_expansion(char32_t c) {
  const auto* found = std::find_if(std::begin(kExpansions), std::end(kExpansions),
                                   [c](const Expansion& one) { return one.letter == c; });
  return found == std::end(kExpansions) ? nullptr : found;
}

bool is_case_ignorable(char32_t c) {
  const auto kind = category(c);
  return kind == UTF8PROC_CATEGORY_MN || kind == UTF8PROC_CATEGORY_ME ||
         kind == UTF8PROC_CATEGORY_CF || kind == UTF8PROC_CATEGORY_LM ||
         kind == UTF8PROC_CATEGORY_SK || c == '\'' || c == '.' || c == ':' || c == 0xB7 ||
         c == 0x2019;
}

constexpr char32_t kSigma = 0x3A3;
constexpr char32_t kSmallSigma = 0x3C3;
constexpr char32_t kFinalSigma = 0x3C2;
constexpr char32_t kDottedI = 0x130;

// Sigma has a different form at the end of a word (Unicode, section 3.13).
bool is_final(std::string_view text, std::size_t at) {
  bool behind_cased = false;
  for (std::size_t index = 0; index < at;) {
    const Character c = character_at(text, index);
    if (!is_case_ignorable(c.value)) behind_cased = is_cased(c.value);
    index += c.n_bytes;
  }
  if (!behind_cased) return false;
  for (std::size_t index = at + 2; index < text.size();) {
    const Character c = character_at(text, index);
    if (!is_case_ignorable(c.value)) return !is_cased(c.value);
    index += c.n_bytes;
  }
  return true;
}

void append_lower(std::string_view text, std::size_t at, char32_t c, std::string& out) {
  if (c == kSigma) {
    append_character(is_final(text, at) ? kFinalSigma : kSmallSigma, out);
  } else if (c == kDottedI) {
    out += "i\xCC\x87";
  } else {
    append_character(simple_lower(c), out);
  }
}

bool is_line_end(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

template <typename IsStripped>
std::string_view strip_if(std::string_view text, Side side, const IsStripped& is_stripped) {
  if (side != Side::right) {
    while (!text.empty()) {
      const Character c = character_at(text, 0);
      if (!is_stripped(c.value)) break;
      text.remove_prefix(c.n_bytes);
    }
  }
  if (side != Side::left) {
    while (!text.empty()) {
      std::size_t at = text.size() - 1;
      while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
      if (!is_stripped(character_at(text, at).value)) break;
      text.remove_suffix(text.size() - at);
    }
  }
  return text;
}

}  // namespace

Character character_at(std::string_view text, std::size_t at) {
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

void append_character(char32_t value, std::string& out) {
  const auto add = [&out](char32_t byte) { out += static_cast<char>(byte); };
  if (value < 0x80) {
    add(value);
  } else if (value < 0x800) {
    add(0xC0 | value >> 6);
    add(0x80 | (value & 0x3F));
  } else if (value < 0x10000) {
    add(0xE0 | value >> 12);
    add(0x80 | (value >> 6 & 0x3F));
    add(0x80 | (value & 0x3F));
  } else {
    add(0xF0 | value >> 18);
    add(0x80 | (value >> 12 & 0x3F));
    add(0x80 | (value >> 6 & 0x3F));
    add(0x80 | (value & 0x3F));
  }
}

std::u32string code_points(std::string_view text) {
  std::u32string characters;
  characters.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Character c = character_at(text, at);
    characters += c.value;
    at += c.n_bytes;
  }
  return characters;
}

std::string utf8_of(std::u32string_view characters) {
  std::string text;
  for (const char32_t c : characters) append_character(c, text);
  return text;
}

std::size_t find_bad_byte(std::string_view text) {
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  for (std::size_t at = 0; at < text.size();) {
    if (bytes[at] < 0x80) {
      ++at;
      continue;
    }
    utf8proc_int32_t c = 0;
    const auto n =
        utf8proc_iterate(bytes + at, static_cast<utf8proc_ssize_t>(text.size() - at), &c);
    if (n <= 0) return at;
    at += static_cast<std::size_t>(n);
  }
  return std::string_view::npos;
}

bool is_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F);
  return c == 0x85 || c == 0x2028 || c == 0x2029 || category(c) == UTF8PROC_CATEGORY_ZS;
}

bool is_alphabetic(char32_t c) {
  switch (category(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return true;
    default:
      return false;
  }
}

bool is_decimal(char32_t c) { return category(c) == UTF8PROC_CATEGORY_ND; }

bool is_digit(char32_t c) {
  return is_decimal(c) || c == 0xB2 || c == 0xB3 || c == 0xB9 || c == 0x2070 ||
         (c >= 0x2074 && c <= 0x2079) || (c >= 0x2080 && c <= 0x2089);
}

bool is_numeric(char32_t c) {
  const auto kind = category(c);
  return kind == UTF8PROC_CATEGORY_ND || kind == UTF8PROC_CATEGORY_NL ||
         kind == UTF8PROC_CATEGORY_NO;
}

bool is_upper(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LU; }
bool is_lower(char32_t c) {
  // The ordinal indicators count as lower case, though they are no lower-case letters.
  return category(c) == UTF8PROC_CATEGORY_LL || c == 0xAA || c == 0xBA;
}
bool is_title(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LT; }
bool is_cased(char32_t c) { return is_upper(c) || is_lower(c) || is_title(c); }

bool is_printable(char32_t c) {
  if (c < 0x7F) return c >= 0x20;
  switch (category(c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
      return false;
    default:
      return true;
  }
}

void append_upper(char32_t c, std::string& out) {
  if (const Expansion* one = find_expansion(c)) {
    out += one->upper;
  } else {
    append_character(simple_upper(c), out);
  }
}

void append_title(char32_t c, std::string& out) {
  if (const Expansion* one = find_expansion(c)) {
    out += one->title;
  } else {
    append_character(simple_title(c), out);
  }
}

std::string to_upper(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const Character c = character_at(text, at);
    append_upper(c.value, out);
    at += c.n_bytes;
  }
  return out;
}

std::string to_lower(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const Character c = character_at(text, at);
    append_lower(text, at, c.value, out);
    at += c.n_bytes;
  }
  return out;
}

std::string to_title(std::string_view text) {
  std::string out;
  bool behind_cased = false;
  for (std::size_t at = 0; at < text.size();) {
    const Character c = character_at(text, at);
    if (behind_cased) {
      append_lower(text, at, c.value, out);
    } else {
      append_title(c.value, out);
    }
    behind_cased = is_cased(c.value);
    at += c.n_bytes;
  }
  return out;
}

std::string capitalize(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const Character c = character_at(text, at);
    if (at == 0) {
      append_title(c.value, out);
    } else {
      append_lower(text, at, c.value, out);
    }
    at += c.n_bytes;
  }
  return out;
}

std::string swap_case(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const Character c = character_at(text, at);
    if (is_upper(c.value)) {
      append_lower(text, at, c.value, out);
    } else if (is_lower(c.value)) {
      append_upper(c.value, out);
    } else {
      append_character(c.value, out);
    }
    at += c.n_bytes;
  }
  return out;
}

std::string_view strip(std::string_view text, Side side) {
  return strip_if(text, side, [](char32_t c) { return is_space(c); });
}

std::string_view strip(std::string_view text, std::string_view chars, Side side) {
  const std::u32string set = code_points(chars);
  return strip_if(text, side, [&set](char32_t c) { return set.find(c) != std::u32string::npos; });
}

std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const Character c = character_at(text, at);
    std::size_t end = at + c.n_bytes;
    if (is_line_end(c.value)) {
      if (c.value == '\r' && end < text.size() && text[end] == '\n') ++end;
      lines.push_back(text.substr(begin, (keep_ends ? end : at) - begin));
      begin = end;
    }
    at = end;
  }
  if (begin < text.size()) lines.push_back(text.substr(begin));
  return lines;
}

}  // namespace outrider::jinja
