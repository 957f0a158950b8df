// SPDX-License-Identifier: Apache-2.0
// + - * / // % ** by Python's rules, on integers of 64 bits.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "chat_template/functions/markup.h"
#include "chat_template/values/characters.h"
#include "chat_template/values/operations.h"
#include "chat_template/values/printf_format.h"

namespace outrider::jinja {
namespace {

std::string_view sign_of(Operator operation) {
  switch (operation) {
    case Operator::add:
      return "+";
    case Operator::subtract:
      return "-";
    case Operator::multiply:
      return "*";
    case Operator::divide:
      return "/";
    case Operator::floor_divide:
      return "//";
    case Operator::modulo:
      return "%";
    default:
      return "**";
  }
}

[[noreturn]] void too_large() { fail("expected integers of 64 bits, got a larger one"); }

std::int64_t add(std::int64_t left, std::int64_t right) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(left, right, &sum)) too_large();
  return sum;
}

std::int64_t subtract(std::int64_t left, std::int64_t right) {
  std::int64_t difference = 0;
  if (__builtin_sub_overflow(left, right, &difference)) too_large();
  return difference;
}

std::int64_t multiply(std::int64_t left, std::int64_t right) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(left, right, &product)) too_large();
  return product;
}

// Division that rounds down.
std::int64_t floor_divide(std::int64_t left, std::int64_t right) {
  if (right == 0) fail("expected a divisor other than 0, got 0");
  if (right == -1) return subtract(0, left);
  const std::int64_t quotient = left / right;
  return quotient * right != left && (left < 0) != (right < 0) ? quotient - 1 : quotient;
}

std::int64_t modulo(std::int64_t left, std::int64_t right) {
  if (right == 0) fail("expected a divisor other than 0, got 0");
  if (right == -1) return 0;
  const std::int64_t rest = left % right;
  return rest != 0 && (rest < 0) != (right < 0) ? rest + right : rest;
}

Value power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) fail("expected a base other than 0 of a negative power, got 0");
    return Value::real(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  std::int64_t result = 1;
  while (exponent > 0) {
    if (exponent % 2 == 1) result = multiply(result, base);
    exponent /= 2;
    if (exponent > 0) base = multiply(base, base);
  }
  return Value::integer(result);
}

Value integers(Operator operation, std::int64_t left, std::int64_t right) {
  switch (operation) {
    case Operator::add:
      return Value::integer(add(left, right));
    case Operator::subtract:
      return Value::integer(subtract(left, right));
    case Operator::multiply:
      return Value::integer(multiply(left, right));
    case Operator::divide:
      if (right == 0) fail("expected a divisor other than 0, got 0");
      return Value::real(static_cast<double>(left) / static_cast<double>(right));
    case Operator::floor_divide:
      return Value::integer(floor_divide(left, right));
    case Operator::modulo:
      return Value::integer(modulo(left, right));
    default:
      return power(left, right);
  }
}

double real_modulo(double left, double right) {
  double rest = std::fmod(left, right);
  if (rest == 0) return std::copysign(0.0, right);
  if ((rest < 0) != (right < 0)) rest += right;
  return rest;
}

// As in Python: derived from the remainder, so that quotient and remainder are consistent.
double real_floor_divide(double left, double right) {
  const double quotient = (left - real_modulo(left, right)) / right;
  if (quotient == 0) return std::copysign(0.0, left / right);
  const double floor = std::floor(quotient);
  return quotient - floor > 0.5 ? floor + 1 : floor;
}

Value reals(Operator operation, double left, double right) {
  if (right == 0 && (operation == Operator::divide || operation == Operator::floor_divide ||
                     operation == Operator::modulo)) {
    fail("expected a divisor other than 0, got 0");
  }
  switch (operation) {
    case Operator::add:
      return Value::real(left + right);
    case Operator::subtract:
      return Value::real(left - right);
    case Operator::multiply:
      return Value::real(left * right);
    case Operator::divide:
      return Value::real(left / right);
    case Operator::floor_divide:
      return Value::real(real_floor_divide(left, right));
    case Operator::modulo:
      return Value::real(real_modulo(left, right));
    default:
      break;
  }
  if (left == 0 && right < 0) fail("expected a base other than 0 of a negative power, got 0");
  const double result = std::pow(left, right);
  if (std::isnan(result) && !std::isnan(left) && !std::isnan(right)) {
    fail("expected a power that is a real number, got a complex one");
  }
  if (std::isinf(result) && std::isfinite(left) && std::isfinite(right)) {
    fail("expected a power within the range of floating-point numbers, got a larger one");
  }
  return Value::real(result);
}

Value concatenate(const Text& left, const Text& right, Heap& heap) {
  heap.check_text_size(left.bytes.size() + right.bytes.size());
  if (left.is_markup == right.is_markup) {
    return heap.text(left.bytes + right.bytes, left.is_markup);
  }
  return left.is_markup ? heap.text(left.bytes + escape_markup(right.bytes), true)
                        : heap.text(escape_markup(left.bytes) + right.bytes, true);
}

Value repeated(const Value& value, std::int64_t n, Heap& heap) {
  if (n < 0) n = 0;
  if (value.is_text()) {
    const Text& text = value.as_text();
    if (n > 0 && text.bytes.size() > heap.limits().text_bytes / static_cast<std::uint64_t>(n)) {
      heap.check_text_size(heap.limits().text_bytes + 1);
    }
    std::string out;
    out.reserve(text.bytes.size() * static_cast<std::size_t>(n));
    if (!text.bytes.empty()) {
      for (std::int64_t i = 0; i < n; ++i) out += text.bytes;
    }
    return heap.text(std::move(out), text.is_markup);
  }
  const auto& items = value.as_sequence().items;
  std::vector<Value> out;
  for (std::int64_t i = 0; i < n && !items.empty(); ++i) {
    heap.count_memory(items.size() * sizeof(Value));
    heap.count_steps(static_cast<std::int64_t>(items.size()));
    out.insert(out.end(), items.begin(), items.end());
  }
  return value.is(Kind::list) ? heap.list(std::move(out)) : heap.tuple(std::move(out));
}

Value joined(const Value& left, const Value& right, Heap& heap) {
  std::vector<Value> items = left.as_sequence().items;
  const auto& more = right.as_sequence().items;
  heap.count_steps(static_cast<std::int64_t>(items.size() + more.size()));
  items.insert(items.end(), more.begin(), more.end());
  return left.is(Kind::list) ? heap.list(std::move(items)) : heap.tuple(std::move(items));
}

}  // namespace

Value arithmetic(Operator operation, const Value& left, const Value& right, Heap& heap) {
  if (operation == Operator::modulo && left.is_text()) return printf_format(left, right, heap);
  if (left.is_undefined()) fail_undefined(left);
  if (right.is_undefined()) fail_undefined(right);
  if (left.is_integral() && right.is_integral()) {
    return integers(operation, left.as_integer(), right.as_integer());
  }
  if (left.is_number() && right.is_number()) {
    return reals(operation, left.as_real(), right.as_real());
  }
  if (operation == Operator::add) {
    if (left.is_text() && right.is_text()) {
      return concatenate(left.as_text(), right.as_text(), heap);
    }
    if (left.is_sequence() && left.kind() == right.kind()) return joined(left, right, heap);
  }
  if (operation == Operator::multiply) {
    if ((left.is_text() || left.is_sequence()) && right.is_integral()) {
      return repeated(left, right.as_integer(), heap);
    }
    if ((right.is_text() || right.is_sequence()) && left.is_integral()) {
      return repeated(right, left.as_integer(), heap);
    }
  }
  fail(fmt::format("'{}': expected operands that fit each other, got {} and {}", sign_of(operation),
                   type_name(left), type_name(right)));
}

Value negative(const Value& value) {
  if (value.is_undefined()) fail_undefined(value);
  if (value.is_integral()) return Value::integer(subtract(0, value.as_integer()));
  if (value.is(Kind::real)) return Value::real(-value.as_real());
  fail(fmt::format("'-': expected a number, got {}", type_name(value)));
}

Value positive(const Value& value) {
  if (value.is_undefined()) fail_undefined(value);
  if (value.is_integral()) return Value::integer(value.as_integer());
  if (value.is(Kind::real)) return value;
  fail(fmt::format("'+': expected a number, got {}", type_name(value)));
}

}  // namespace outrider::jinja
