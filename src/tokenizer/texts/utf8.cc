// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/texts/utf8.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "outrider/error.h"
#include "outrider/tokenizer.h"

namespace outrider {
namespace {

utf8proc_category_t category(char32_t value) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(value));
}

}  // namespace

Utf8Scan scan_utf8(std::string_view text) {
  const auto* const bytes = reinterpret_cast<const unsigned char*>(text.data());
  const std::size_t n = text.size();
  std::size_t at = 0;
  while (at < n) {
    while (at + 8 <= n) {  // eight ASCII bytes at a time
      std::uint64_t word;
      std::memcpy(&word, bytes + at, 8);
      if (word & 0x8080808080808080u) break;
      at += 8;
    }
    if (at == n) break;
    const unsigned char first = bytes[at];
    if (first < 0x80) {
      ++at;
      continue;
    }
    // Table 3-7 of the Unicode Standard: the valid second bytes depend on the first.
    std::size_t length = 0;
    unsigned char low = 0x80;
    unsigned char high = 0xBF;
    if (first >= 0xC2 && first <= 0xDF) {
      length = 2;
    } else if (first >= 0xE0 && first <= 0xEF) {
      length = 3;
      if (first == 0xE0) low = 0xA0;
      if (first == 0xED) high = 0x9F;  // no surrogates
    } else if (first >= 0xF0 && first <= 0xF4) {
      length = 4;
      if (first == 0xF0) low = 0x90;
      if (first == 0xF4) high = 0x8F;  // nothing above U+10FFFF
    }
    if (length == 0) return {at, 1, false};
    for (std::size_t i = 1; i < length; ++i) {
      if (at + i == n) return {at, i, true};
      if (bytes[at + i] < low || bytes[at + i] > high) return {at, i, false};
      low = 0x80;
      high = 0xBF;
    }
    at += length;
  }
  return {n, 0, false};
}

void require_utf8(std::string_view text, std::string_view operation, std::string_view object) {
  const Utf8Scan scan = scan_utf8(text);
  if (scan.n_bad == 0) return;
  const std::string_view before = text.substr(0, scan.n_valid);
  throw Error(
      operation, object, "UTF-8 text",
      fmt::format("byte 0x{:02X} in line {}", static_cast<unsigned char>(text[scan.n_valid]),
                  std::count(before.begin(), before.end(), '\n') + 1));
}

void require_text(std::string_view text, std::string_view name) {
  require_utf8(text, "read text", name);
}

std::string repair_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Utf8Scan scan = scan_utf8(text);
    out.append(text.substr(0, scan.n_valid));
    if (scan.n_bad > 0) out.append(kReplacementCharacter);
    text.remove_prefix(scan.n_valid + scan.n_bad);
  }
  return out;
}

std::size_t last_character(std::string_view text) {
  std::size_t at = text.size() - 1;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return at;
}

void append_utf8(char32_t value, std::string& out) {
  const auto put = [&](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (value < 0x80) {
    put(value);
  } else if (value < 0x800) {
    put(0xC0 | value >> 6);
    put(0x80 | (value & 0x3F));
  } else if (value < 0x10000) {
    put(0xE0 | value >> 12);
    put(0x80 | (value >> 6 & 0x3F));
    put(0x80 | (value & 0x3F));
  } else {
    put(0xF0 | value >> 18);
    put(0x80 | (value >> 12 & 0x3F));
    put(0x80 | (value >> 6 & 0x3F));
    put(0x80 | (value & 0x3F));
  }
}

bool is_white_space(char32_t value) {
  if (value <= 0x20) return value == 0x20 || (value >= 0x09 && value <= 0x0D);
  if (value < 0x1680) return value == 0x85 || value == 0xA0;
  return value == 0x1680 || (value >= 0x2000 && value <= 0x200A) || value == 0x2028 ||
         value == 0x2029 || value == 0x202F || value == 0x205F || value == 0x3000;
}

bool is_numeric(char32_t value) {
  if (value < 0x80) return value >= '0' && value <= '9';
  const utf8proc_category_t c = category(value);
  return c == UTF8PROC_CATEGORY_ND || c == UTF8PROC_CATEGORY_NL || c == UTF8PROC_CATEGORY_NO;
}

bool is_punctuation(char32_t value) {
  if (value < 0x80) {
    return (value >= 0x21 && value <= 0x2F) || (value >= 0x3A && value <= 0x40) ||
           (value >= 0x5B && value <= 0x60) || (value >= 0x7B && value <= 0x7E);
  }
  const utf8proc_category_t c = category(value);
  return c >= UTF8PROC_CATEGORY_PC && c <= UTF8PROC_CATEGORY_PO;
}

bool is_mark(char32_t value) {
  if (value < 0x300) return false;
  const utf8proc_category_t c = category(value);
  return c == UTF8PROC_CATEGORY_MN || c == UTF8PROC_CATEGORY_MC || c == UTF8PROC_CATEGORY_ME;
}

bool is_word_character(char32_t value) {
  if (value < 0x80) {
    return (value >= '0' && value <= '9') || (value >= 'A' && value <= 'Z') || value == '_' ||
           (value >= 'a' && value <= 'z');
  }
  if (value == 0x200C || value == 0x200D) return true;  // Join_Control
  switch (category(value)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:  // circled and squared letters are Alphabetic only by Other_Alphabetic
      return (value >= 0x24B6 && value <= 0x24E9) || (value >= 0x1F130 && value <= 0x1F149) ||
             (value >= 0x1F150 && value <= 0x1F169) || (value >= 0x1F170 && value <= 0x1F189);
  }
}

bool is_one_character(std::string_view spelling) {
  return !spelling.empty() && is_valid_utf8(spelling) && last_character(spelling) == 0;
}

}  // namespace outrider
