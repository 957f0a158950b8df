// SPDX-License-Identifier: Apache-2.0
#include "chat_template/parsing/unescape.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>

#include "chat_template/values/characters.h"

namespace outrider::jinja {
namespace {

// The value of up to `n` digits at the beginning of `text`, which it removes.
std::optional<char32_t> read_digits(std::string_view& text, std::size_t n, int base) {
  const std::string_view digits = text.substr(0, n);
  std::uint32_t value = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error != std::errc()) return std::nullopt;
  const auto n_read = static_cast<std::size_t>(end - digits.data());
  if (base == 16 && n_read != n) return std::nullopt;
  text.remove_prefix(n_read);
  return value;
}

std::size_t n_hex_digits(char letter) { return letter == 'x' ? 2 : letter == 'u' ? 4 : 8; }

}  // namespace

std::optional<std::string> unescape(std::string_view spelled, std::string& problem) {
  std::string value;
  while (!spelled.empty()) {
    const char c = spelled.front();
    spelled.remove_prefix(1);
    if (c != '\\' || spelled.empty()) {
      value += c;
      continue;
    }
    const char letter = spelled.front();
    if (letter >= '0' && letter <= '7') {
      append_character(read_digits(spelled, 3, 8).value_or(0), value);
      continue;
    }
    spelled.remove_prefix(1);
    switch (letter) {
      case '\n':  // line continuation
        break;
      case '\\':
      case '\'':
      case '"':
        value += letter;
        break;
      case 'a':
        value += '\a';
        break;
      case 'b':
        value += '\b';
        break;
      case 'f':
        value += '\f';
        break;
      case 'n':
        value += '\n';
        break;
      case 'r':
        value += '\r';
        break;
      case 't':
        value += '\t';
        break;
      case 'v':
        value += '\v';
        break;
      case 'x':
      case 'u':
      case 'U': {
        const auto code = read_digits(spelled, n_hex_digits(letter), 16);
        if (!code) {
          problem = fmt::format("expected {} hexadecimal digits behind \\{}, got fewer",
                                n_hex_digits(letter), letter);
          return std::nullopt;
        }
        if (*code > 0x10FFFF || (*code >= 0xD800 && *code < 0xE000)) {
          problem = fmt::format("expected a Unicode character, got \\{}{:x}", letter,
                                static_cast<std::uint32_t>(*code));
          return std::nullopt;
        }
        append_character(*code, value);
        break;
      }
      case 'N':
        problem = "expected an escape other than \\N (characters by name), got that";
        return std::nullopt;
      default:
        value += '\\';
        value += letter;
    }
  }
  return value;
}

std::optional<double> read_real_number(const std::string& digits) {
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (end != digits.data() + digits.size() || digits.empty()) return std::nullopt;
  if (error == std::errc::result_out_of_range) {
    const bool is_small =
        digits.find("e-") != std::string::npos || digits.find("E-") != std::string::npos;
    const double magnitude = is_small ? 0.0 : std::numeric_limits<double>::infinity();
    return digits.front() == '-' ? -magnitude : magnitude;
  }
  if (error != std::errc()) return std::nullopt;
  return value;
}

}  // namespace outrider::jinja
