// SPDX-License-Identifier: Apache-2.0
// Filters that produce numbers.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "chat_template/functions/filters.h"
#include "chat_template/functions/parameters.h"
#include "chat_template/parsing/unescape.h"
#include "chat_template/values/attribute_path.h"
#include "chat_template/values/characters.h"
#include "chat_template/values/operations.h"

namespace outrider::jinja {
namespace {

constexpr double kBeyondIntegers = 9223372036854775808.0;  // 2^63

// Removes single underscores between digits; nullopt for anything else.
std::optional<std::string> without_underscores(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out += text[i];
      continue;
    }
    const auto is_letter = [&](std::size_t at) {
      return at < text.size() && std::isalnum(static_cast<unsigned char>(text[at])) != 0;
    };
    if (i == 0 || !is_letter(i - 1) || !is_letter(i + 1)) return std::nullopt;
  }
  return out;
}

std::optional<std::int64_t> integer_in(std::string_view text, int base) {
  text = strip(text, Side::both);
  bool is_negative = false;
  if (text.starts_with('+') || text.starts_with('-')) {
    is_negative = text.front() == '-';
    text.remove_prefix(1);
  }
  const auto prefix_is = [&](char letter) {
    return text.size() > 2 && text[0] == '0' && (text[1] | 0x20) == letter;
  };
  const int prefixed = prefix_is('x') ? 16 : prefix_is('o') ? 8 : prefix_is('b') ? 2 : 0;
  if (prefixed != 0 && (base == prefixed || base == 0)) {
    base = prefixed;
    text.remove_prefix(2);
    if (text.starts_with('_')) text.remove_prefix(1);
  } else if (base == 0) {
    base = 10;
    const bool is_zero = text.find_first_not_of("0_") == std::string_view::npos;
    if (text.size() > 1 && text[0] == '0' && !is_zero) return std::nullopt;
  }
  const std::optional<std::string> digits = without_underscores(text);
  if (!digits || digits->empty() || digits->front() == '-') return std::nullopt;
  std::int64_t value = 0;
  const std::string spelled = (is_negative ? "-" : "") + *digits;
  const auto [end, error] =
      std::from_chars(spelled.data(), spelled.data() + spelled.size(), value, base);
  if (end != spelled.data() + spelled.size()) return std::nullopt;
  if (error == std::errc::result_out_of_range) {
    fail("int: expected integers of 64 bits, got a larger one");
  }
  if (error != std::errc()) return std::nullopt;
  return value;
}

std::optional<double> real_in(std::string_view text) {
  text = strip(text, Side::both);
  const bool has_plus = text.starts_with('+');
  if (has_plus) text.remove_prefix(1);
  if (has_plus && (text.starts_with('-') || text.starts_with('+'))) return std::nullopt;
  const std::optional<std::string> digits = without_underscores(text);
  if (!digits || digits->find_first_of("xX(") != std::string::npos) return std::nullopt;
  return read_real_number(*digits);
}

std::int64_t whole(double value) {
  const double number = std::trunc(value);
  if (!(number >= -kBeyondIntegers && number < kBeyondIntegers)) {
    fail("int: expected an integer of 64 bits, got another number");
  }
  return static_cast<std::int64_t>(number);
}

Value to_integer(const Value& subject, const Arguments& arguments, Heap& heap) {
  const Parameters given("int", arguments, {"default", "base"});
  const Value otherwise = given.value(0, Value::integer(0));
  const std::int64_t base = given.integer(1, 10);
  if (subject.is_undefined()) fail_undefined(subject);
  if (subject.is_integral()) return Value::integer(subject.as_integer());
  if (subject.is(Kind::real)) {
    if (std::isnan(subject.as_real())) return otherwise;
    return Value::integer(whole(subject.as_real()));
  }
  if (!subject.is_text()) return otherwise;
  const std::string& text = subject.as_text().bytes;
  heap.count_bytes_read(text.size());
  if (base == 0 || (base >= 2 && base <= 36)) {
    if (const auto value = integer_in(text, static_cast<int>(base))) return Value::integer(*value);
  }
  const std::optional<double> real = real_in(text);
  if (!real || !std::isfinite(*real)) return otherwise;
  return Value::integer(whole(*real));
}

Value to_real(const Value& subject, const Arguments& arguments, Heap& heap) {
  const Parameters given("float", arguments, {"default"});
  if (subject.is_undefined()) fail_undefined(subject);
  if (subject.is_number()) return Value::real(subject.as_real());
  const Value otherwise = given.value(0, Value::real(0));
  if (!subject.is_text()) return otherwise;
  heap.count_bytes_read(subject.as_text().bytes.size());
  const std::optional<double> value = real_in(subject.as_text().bytes);
  return value ? Value::real(*value) : otherwise;
}

Value absolute(const Value& subject, const Arguments& arguments, Heap& /*heap*/) {
  const Parameters given("abs", arguments, {});
  if (subject.is_undefined()) fail_undefined(subject);
  if (subject.is(Kind::real)) return Value::real(std::fabs(subject.as_real()));
  if (!subject.is_integral()) {
    fail(fmt::format("abs: expected a number, got {}", type_name(subject)));
  }
  return subject.as_integer() < 0 ? negative(subject) : positive(subject);
}

// Rounds to that many digits, ties to even, by the exact binary value.
double rounded(double value, std::int64_t n_digits) {
  if (!std::isfinite(value) || n_digits > 22) return value;
  if (n_digits >= 0) {
    const std::string text = fmt::format("{:.{}f}", value, static_cast<int>(n_digits));
    return read_real_number(text).value_or(value);
  }
  if (n_digits < -308) return 0.0 * value;
  const double power = std::pow(10.0, static_cast<double>(-n_digits));
  const double scaled = value / power;
  double nearest = std::round(scaled);
  if (std::fabs(scaled - nearest) == 0.5) nearest = 2.0 * std::round(scaled / 2.0);
  return nearest * power;
}

Value rounded_integer(std::int64_t value, std::int64_t n_digits) {
  if (n_digits >= 0) return Value::integer(value);
  if (n_digits < -18) return Value::integer(0);
  std::int64_t power = 1;
  for (std::int64_t i = 0; i < -n_digits; ++i) power *= 10;
  const std::int64_t rest = ((value % power) + power) % power;
  std::int64_t down = 0;
  if (__builtin_sub_overflow(value, rest, &down))
    fail("round: expected integers of 64 bits, got a larger one");
  const bool up = rest > power / 2 || (rest == power / 2 && (down / power) % 2 != 0);
  std::int64_t result = down;
  if (up && __builtin_add_overflow(down, power, &result)) {
    fail("round: expected integers of 64 bits, got a larger one");
  }
  return Value::integer(result);
}

Value round(const Value& subject, const Arguments& arguments, Heap& /*heap*/) {
  const Parameters given("round", arguments, {"precision", "method"});
  const std::string method = given.given(1) ? given.text(1) : "common";
  if (method != "common" && method != "ceil" && method != "floor") {
    fail("round: expected the method common, ceil or floor, got another");
  }
  if (subject.is_undefined()) fail_undefined(subject);
  if (!subject.is_number())
    fail(fmt::format("round: expected a number, got {}", type_name(subject)));
  const std::int64_t n_digits = given.integer(0, 0);
  if (method == "common") {
    if (subject.is_integral()) return rounded_integer(subject.as_integer(), n_digits);
    return Value::real(rounded(subject.as_real(), n_digits));
  }
  const double power = std::pow(10.0, static_cast<double>(n_digits));
  const double scaled = subject.as_real() * power;
  if (!std::isfinite(scaled)) fail("round: expected a finite number, got another");
  const double whole_number = method == "ceil" ? std::ceil(scaled) : std::floor(scaled);
  return Value::real((whole_number + 0.0) / power);
}

Value sum(const Value& subject, const Arguments& arguments, Heap& heap) {
  const Parameters given("sum", arguments, {"attribute", "start"});
  const AttributePath path(given[0], heap);
  Value total = given.value(1, Value::integer(0));
  if (total.is_text()) fail("sum: expected a start that is no text, got one");
  const auto next = items_of(subject, heap);
  for (Value item = next(); !item.is_absent(); item = next()) {
    total = arithmetic(Operator::add, total, path.of(item), heap);
  }
  return total;
}

Value length_of(const Value& subject, const Arguments& arguments, Heap& heap) {
  const Parameters given("length", arguments, {});
  return Value::integer(length(subject, heap));
}

struct NamedFilter {
  std::string_view name;
  Filter filter;
};
constexpr NamedFilter kFilters[] = {
    {"int", to_integer}, {"float", to_real},    {"abs", absolute},    {"round", round},
    {"sum", sum},        {"length", length_of}, {"count", length_of},
};

}  // namespace

Filter find_number_filter(std::string_view name) {
  const auto* found = std::find_if(std::begin(kFilters), std::end(kFilters),
                                   [name](const NamedFilter& one) { return one.name == name; });
  return found == std::end(kFilters) ? nullptr : found->filter;
}

}  // namespace outrider::jinja
