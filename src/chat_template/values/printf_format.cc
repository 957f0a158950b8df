// SPDX-License-Identifier: Apache-2.0
#include "chat_template/values/printf_format.h"

#include <fmt/format.h>

#include <cmath>

#include "chat_template/values/characters.h"
#include "chat_template/values/number_format.h"
#include "chat_template/values/operations.h"
#include "chat_template/values/printed.h"

namespace outrider::jinja {
namespace {

class PrintfFormatter {
 public:
  PrintfFormatter(const std::string& format, const Value& values, Heap& heap)
      : format_(format), values_(values), heap_(&heap) {}

  std::string run() {
    std::string out;
    while (at_ < format_.size()) {
      const char c = format_[at_++];
      if (c != '%') {
        out += c;
        continue;
      }
      out += conversion();
      heap_->check_text_size(out.size());
    }
    const bool all_taken = values_.is(Kind::tuple) ? n_taken_ == values_.as_sequence().items.size()
                                                   : n_taken_ == 1 || may_be_unused();
    if (!all_taken) fail("'%': expected a conversion for every value, got fewer");
    return out;
  }

 private:
  // Values with items by key may stay unused.
  bool may_be_unused() const {
    return values_.is_dict() || values_.is(Kind::list) || values_.is(Kind::range) ||
           values_.is_undefined();
  }

  char peek() const {
    if (at_ >= format_.size()) fail("'%': expected a conversion, got the end of the text");
    return format_[at_];
  }

  std::int64_t number() {
    std::int64_t value = 0;
    while (peek() >= '0' && peek() <= '9') {
      value = value * 10 + (format_[at_++] - '0');
      if (value > kWidest) fail(fmt::format("'%': expected a width up to {}, got more", kWidest));
    }
    return value;
  }

  Value next_value() {
    if (values_.is(Kind::tuple)) {
      const auto& items = values_.as_sequence().items;
      if (n_taken_ >= items.size()) fail("'%': expected a value for every conversion, got fewer");
      return items[n_taken_++];
    }
    if (n_taken_++ > 0) fail("'%': expected a value for every conversion, got fewer");
    return values_;
  }

  std::string conversion() {
    NumberForm form;
    Value value;
    if (peek() == '(') {
      const std::size_t end = format_.find(')', at_);
      if (end == std::string::npos) fail("'%': expected ')', got the end of the text");
      if (!values_.is_dict()) fail("'%': expected a mapping for %(name), got another value");
      const Value* found = find(values_.as_dict(), format_.substr(at_ + 1, end - at_ - 1));
      if (found == nullptr) fail("'%': expected a key of the mapping, got another name");
      value = *found;
      at_ = end + 1;
    }
    bool zero = false;
    for (;; ++at_) {
      const char flag = peek();
      if (flag == '-') {
        form.align = '<';
      } else if (flag == '+' || (flag == ' ' && form.sign != '+')) {
        form.sign = flag;
      } else if (flag == '#') {
        form.alternate = true;
      } else if (flag == '0') {
        zero = true;
      } else if (flag != ' ') {
        break;
      }
    }
    form.width = number();
    if (peek() == '.') {
      ++at_;
      form.precision = number();
    }
    // C's length modifiers, without effect.
    if (peek() == 'l' || peek() == 'h' || peek() == 'L') ++at_;
    form.type = peek();
    ++at_;
    if (form.type == '%') return "%";
    if (value.is_absent()) value = next_value();
    if (zero && form.align == '\0') {
      form.fill.assign(1, '0');
      form.align = '=';
    }
    return converted(value, form);
  }

  std::string converted(const Value& value, NumberForm& form) {
    switch (form.type) {
      case 's':
      case 'r':
      case 'a': {
        std::string text = form.type == 's' ? printed(value, *heap_) : represented(value, *heap_);
        if (form.precision >= 0) {
          text = utf8_of(code_points(text).substr(0, static_cast<std::size_t>(form.precision)));
        }
        form.fill.assign(1, ' ');
        return padded(text, form, '>');
      }
      case 'd':
      case 'i':
      case 'u':
        return format_integer(whole(value), form);
      case 'x':
      case 'X':
      case 'o':
        return format_integer(integer_of(value, "'%'"), form);
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        if (value.is_undefined()) fail_undefined(value);
        if (!value.is_number()) {
          fail(fmt::format("'%': expected a number, got {}", type_name(value)));
        }
        return format_real(value.as_real(), form);
      default:
        fail(fmt::format("'%': expected a known conversion, got '{}'", form.type));
    }
  }

  static std::int64_t whole(const Value& value) {
    if (!value.is(Kind::real)) return integer_of(value, "'%'");
    constexpr double kBeyond = 9223372036854775808.0;  // 2^63
    const double number = std::trunc(value.as_real());
    if (!(number >= -kBeyond && number < kBeyond)) {
      fail("'%': expected an integer of 64 bits, got another number");
    }
    return static_cast<std::int64_t>(number);
  }

  const std::string& format_;
  Value values_;
  Heap* heap_;
  std::size_t at_ = 0;
  std::size_t n_taken_ = 0;
};

}  // namespace

Value printf_format(const Value& format, const Value& values, Heap& heap) {
  return heap.text(PrintfFormatter(format.as_text().bytes, values, heap).run(),
                   format.as_text().is_markup);
}

}  // namespace outrider::jinja
