// SPDX-License-Identifier: Apache-2.0
#include "chat_template/values/number_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "chat_template/values/characters.h"
#include "chat_template/values/printed.h"

// Formats numbers as Python's % and format() do: jinja templates call both. In a NumberForm '\0'
// and a negative precision mean that the text gives none. Callers check that the type fits the
// number and that the precision is at most kWidest.
namespace outrider::jinja {
namespace {

// The sign to print; `sign` is NumberForm::sign.
std::string sign_of(bool is_negative, char sign) {
  if (is_negative) return "-";
  return sign == '-' ? "" : std::string(1, sign);
}

// Inserts a separator between groups of `size` digits, counted from the right.
std::string grouped(std::string_view digits, char separator, std::size_t size) {
  std::string out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % size == 0) out += separator;
    out += digits[i];
  }
  return out;
}

// Sign and digits, filled to the form's width. With the alignment '=' the fill is after the sign.
std::string joined(const std::string& sign, const std::string& body, const NumberForm& form) {
  if (form.align != '=' || form.width <= 0) return padded(sign + body, form, '>');
  std::string out = sign;
  const auto n = static_cast<std::int64_t>(sign.size() + body.size());
  for (std::int64_t i = n; i < form.width; ++i) out += form.fill;
  return out + body;
}

// The digits of a finite number that is not negative. type: 'e', 'f' or 'g'; alternate: keeps the
// point and zeros, as C's flag # does.
std::string digits_of(double value, char type, std::int64_t precision, bool alternate) {
  const int places = static_cast<int>(precision);
  switch (type) {
    case 'e':
      return alternate ? fmt::format("{:#.{}e}", value, places)
                       : fmt::format("{:.{}e}", value, places);
    case 'f':
      return alternate ? fmt::format("{:#.{}f}", value, places)
                       : fmt::format("{:.{}f}", value, places);
    default:
      return alternate ? fmt::format("{:#.{}g}", value, std::max(places, 1))
                       : fmt::format("{:.{}g}", value, std::max(places, 1));
  }
}

// The digits of a form with a precision and no type: as for 'g', but with an exponent one digit
// earlier, so that a digit after the point always has its place.
std::string digits_without_type(double value, std::int64_t precision, bool alternate) {
  const std::int64_t places = std::max<std::int64_t>(precision, 1);
  const std::string scientific = digits_of(value, 'e', places - 1, alternate);
  const std::size_t at = scientific.find('e');
  const int exponent = std::stoi(scientific.substr(at + 1));
  if (exponent >= -4 && exponent < places - 1) {
    const std::string digits = digits_of(value, 'g', places, alternate);
    return digits.find('.') == std::string::npos ? digits + ".0" : digits;
  }
  std::string mantissa = scientific.substr(0, at);
  if (!alternate && mantissa.find('.') != std::string::npos) {
    mantissa.erase(mantissa.find_last_not_of('0') + 1);
    if (mantissa.back() == '.') mantissa.pop_back();
  }
  return mantissa + scientific.substr(at);
}

// Digits with separators. Where zeros fill the form's width they get separators, too, and the first
// character is a zero: Python prints more than the width then. n_others: the characters of the form
// beside the digits.
std::string grouped_digits(std::string digits, const NumberForm& form, std::size_t size,
                           std::size_t n_others) {
  const bool has_zeros = form.align == '=' && form.fill == "0";
  const std::int64_t width = has_zeros ? form.width - static_cast<std::int64_t>(n_others) : 0;
  std::size_t n = digits.size();
  while (static_cast<std::int64_t>(n + (n - 1) / size) < width) ++n;
  digits.insert(0, n - digits.size(), '0');
  return grouped(digits, form.grouping, size);
}

}  // namespace

std::string padded(std::string_view text, const NumberForm& form, char default_align) {
  const auto n = static_cast<std::int64_t>(code_points(text).size());
  if (form.width <= n) return std::string(text);
  const std::int64_t missing = form.width - n;
  char align = form.align == '\0' ? default_align : form.align;
  if (align == '=') align = '>';
  const std::int64_t before = align == '<' ? 0 : align == '>' ? missing : missing / 2;
  std::string out;
  for (std::int64_t i = 0; i < before; ++i) out += form.fill;
  out += text;
  for (std::int64_t i = before; i < missing; ++i) out += form.fill;
  return out;
}

std::string format_integer(std::int64_t value, const NumberForm& form) {
  const bool is_negative = value < 0;
  const std::uint64_t magnitude =
      is_negative ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
  std::string digits;
  std::string prefix;
  std::size_t group = 3;
  switch (form.type) {
    case 'x':
      digits = fmt::format("{:x}", magnitude);
      prefix = "0x";
      group = 4;
      break;
    case 'X':
      digits = fmt::format("{:X}", magnitude);
      prefix = "0X";
      group = 4;
      break;
    case 'o':
      digits = fmt::format("{:o}", magnitude);
      prefix = "0o";
      group = 4;
      break;
    case 'b':
      digits = fmt::format("{:b}", magnitude);
      prefix = "0b";
      group = 4;
      break;
    default:
      digits = fmt::format("{}", magnitude);
  }
  while (static_cast<std::int64_t>(digits.size()) < form.precision)
    digits.insert(digits.begin(), '0');
  std::string sign = sign_of(is_negative, form.sign);
  if (form.alternate) sign += prefix;
  if (form.grouping != '\0') digits = grouped_digits(digits, form, group, sign.size());
  return joined(sign, digits, form);
}

std::string format_real(double value, const NumberForm& form) {
  const std::string sign = sign_of(std::signbit(value) && !std::isnan(value), form.sign);
  const double magnitude = std::fabs(value);
  std::string digits;
  if (!std::isfinite(value)) {
    digits = std::isnan(value) ? "nan" : "inf";
  } else if (form.type == '\0' && form.precision < 0) {
    digits = printed_real(magnitude);
  } else if (form.type == '\0') {
    digits = digits_without_type(magnitude, form.precision, form.alternate);
  } else {
    const char lower = static_cast<char>(form.type | 0x20);
    const bool percent = form.type == '%';
    const char type = percent ? 'f' : form.type == 'n' ? 'g' : lower;
    digits = digits_of(percent ? magnitude * 100 : magnitude, type,
                       form.precision < 0 ? 6 : form.precision, form.alternate);
    if (percent) digits += '%';
  }
  if (form.type == 'E' || form.type == 'G' || form.type == 'F') digits = to_upper(digits);
  if (form.grouping != '\0' && std::isfinite(value)) {
    const std::size_t end = std::min(digits.find_first_not_of("0123456789"), digits.size());
    const std::string rest = digits.substr(end);
    digits = grouped_digits(digits.substr(0, end), form, 3, sign.size() + rest.size()) + rest;
  }
  return joined(sign, digits, form);
}

}  // namespace outrider::jinja
