// SPDX-License-Identifier: Apache-2.0
#include "eval/metrics/numeric_answer.h"

#include <cstddef>

#include "outrider/error.h"

namespace outrider::eval {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

struct Number {
  std::string canonical;
  std::size_t end;  // after it
};

bool digit_at(std::string_view text, std::size_t at) {
  return at < text.size() && is_digit(text[at]);
}

// Exactly three digits: what follows a thousands separator.
bool group_at(std::string_view text, std::size_t at) {
  return digit_at(text, at) && digit_at(text, at + 1) && digit_at(text, at + 2) &&
         !digit_at(text, at + 3);
}

// Whether a number or a name may end here, so that a minus after it subtracts.
bool ends_operand(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == ')' || c == ']' ||
         c == '.' || (c & 0x80) != 0;
}

// The beginning of the minus that ends before text[at], a hyphen or U+2212; `at` if there is none.
std::size_t sign_before(std::string_view text, std::size_t at) {
  for (const std::string_view sign : {"-", "\u2212"}) {
    if (text.substr(0, at).ends_with(sign)) return at - sign.size();
  }
  return at;
}

// The number that begins at text[at], a digit or a point before one.
Number read_number(std::string_view text, std::size_t at) {
  // A sign counts if there is nothing before it from which it could subtract.
  const bool dollar = at > 0 && text[at - 1] == '$';
  const std::size_t before = at - (dollar ? 1 : 0);
  const std::size_t sign = sign_before(text, before);
  const bool negative = sign < before && (sign == 0 || !ends_operand(text[sign - 1]));
  std::string whole;
  while (at < text.size()) {
    if (is_digit(text[at])) {
      whole += text[at++];
    } else if (text[at] == ',' && !whole.empty() && group_at(text, at + 1)) {
      ++at;
    } else {
      break;
    }
  }
  std::string fraction;
  if (at < text.size() && text[at] == '.' && digit_at(text, at + 1)) {
    for (++at; digit_at(text, at); ++at) fraction += text[at];
  }
  while (whole.size() > 1 && whole.front() == '0') whole.erase(0, 1);
  while (!fraction.empty() && fraction.back() == '0') fraction.pop_back();
  if (whole.empty()) whole += '0';
  std::string canonical;
  if (negative && (whole != "0" || !fraction.empty())) canonical += '-';
  canonical += whole;
  if (!fraction.empty()) {
    canonical += '.';
    canonical += fraction;
  }
  return {.canonical = canonical, .end = at};
}

// The next number from `at` on; nothing if there is none.
std::optional<Number> next_number(std::string_view text, std::size_t at) {
  for (; at < text.size(); ++at) {
    if (is_digit(text[at]) || (text[at] == '.' && digit_at(text, at + 1))) {
      return read_number(text, at);
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> final_number(std::string_view text) {
  constexpr std::string_view kMark = "####";
  const std::size_t mark = text.rfind(kMark);
  if (mark != std::string_view::npos) {
    const auto number = next_number(text, mark + kMark.size());
    return number ? std::optional(number->canonical) : std::nullopt;
  }
  std::optional<std::string> last;
  std::size_t at = 0;
  while (const auto number = next_number(text, at)) {
    last = number->canonical;
    at = number->end;
  }
  return last;
}

std::vector<double> NumericAnswer::count(const Judged& judged) const {
  const std::optional<std::string> answer = final_number(judged.texts.front());
  bool right = false;
  for (const std::string& reference : judged.references) {
    const std::optional<std::string> expected = final_number(reference);
    if (!expected) throw Error("judge answer", "reference", "a number", reference);
    right = right || answer == expected;
  }
  return {right ? 1.0 : 0.0, 1.0};
}

std::vector<double> NumericAnswer::scores(std::span<const double> sums) const {
  return {100 * sums[0] / sums[1]};
}

std::string NumericAnswer::signature(std::size_t) const { return "number:after-####-or-last"; }

}  // namespace outrider::eval
