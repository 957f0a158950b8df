// SPDX-License-Identifier: Apache-2.0
// text.format(...): replacement fields with attributes, items, conversions and specifications.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "chat_template/functions/methods.h"
#include "chat_template/functions/parameters.h"
#include "chat_template/values/characters.h"
#include "chat_template/values/lookup.h"
#include "chat_template/values/number_format.h"
#include "chat_template/values/operations.h"
#include "chat_template/values/printed.h"
#include "chat_template/values/text_search.h"

namespace outrider::jinja {
namespace {

std::int64_t read_width(std::string_view& spec) {
  std::int64_t value = 0;
  while (!spec.empty() && spec.front() >= '0' && spec.front() <= '9') {
    value = value * 10 + (spec.front() - '0');
    if (value > kWidest) fail(fmt::format("format: expected a width up to {}, got more", kWidest));
    spec.remove_prefix(1);
  }
  return value;
}

bool is_align(char c) { return c == '<' || c == '>' || c == '^' || c == '='; }

// [[fill]align][sign][#][0][width][grouping][.precision][type]
NumberForm read_form(std::string_view spec) {
  NumberForm form;
  if (!spec.empty()) {
    const std::size_t n = character_at(spec, 0).n_bytes;
    if (spec.size() > n && is_align(spec[n])) {
      form.fill = spec.substr(0, n);
      form.align = spec[n];
      spec.remove_prefix(n + 1);
    } else if (is_align(spec.front())) {
      form.align = spec.front();
      spec.remove_prefix(1);
    }
  }
  const auto take = [&spec](std::string_view any) {
    if (spec.empty() || any.find(spec.front()) == std::string_view::npos) return '\0';
    const char c = spec.front();
    spec.remove_prefix(1);
    return c;
  };
  if (const char sign = take("+- ")) form.sign = sign;
  form.alternate = take("#") != '\0';
  if (take("0") != '\0' && form.align == '\0') {
    form.fill.assign(1, '0');
    form.align = '=';
  }
  form.width = read_width(spec);
  form.grouping = take(",_");
  if (take(".") != '\0') {
    if (spec.empty() || spec.front() < '0' || spec.front() > '9') {
      fail("format: expected a precision behind '.', got none");
    }
    form.precision = read_width(spec);
  }
  form.type = take("bcdeEfFgGnosxX%");
  if (!spec.empty()) fail("format: expected a format specification, got another text");
  return form;
}

std::string formatted(const Value& value, std::string_view spec, Heap& heap) {
  if (spec.empty()) return printed(value, heap);
  NumberForm form = read_form(spec);
  const auto refuse = [&] {
    fail(fmt::format("format: expected a specification for {}, got another", type_name(value)));
  };
  constexpr std::string_view kOfReals = "eEfFgG%";
  const bool is_boolean_text = value.is(Kind::boolean) && form.type == '\0' && form.precision < 0;
  if (value.is_integral() && !is_boolean_text) {
    if (form.type != '\0' && kOfReals.find(form.type) != std::string_view::npos) {
      return format_real(value.as_real(), form);
    }
    if (form.type == 's' || form.type == 'c' || form.precision >= 0) refuse();
    return format_integer(value.as_integer(), form);
  }
  if (is_boolean_text) return format_integer(value.as_integer(), form);
  if (value.is(Kind::real)) {
    if (form.type != '\0' && form.type != 'n' &&
        kOfReals.find(form.type) == std::string_view::npos) {
      refuse();
    }
    return format_real(value.as_real(), form);
  }
  // All other values except texts allow no specification.
  if (!value.is_text() || form.align == '=' || form.sign != '-' || form.alternate ||
      form.grouping != '\0' || (form.type != '\0' && form.type != 's')) {
    refuse();
  }
  std::string text = value.as_text().bytes;
  if (form.precision >= 0) {
    text = utf8_of(code_points(text).substr(0, static_cast<std::size_t>(form.precision)));
  }
  return padded(text, form, '<');
}

class Formatter {
 public:
  Formatter(const Arguments& arguments, Heap& heap) : arguments_(&arguments), heap_(&heap) {}

  std::string run(std::string_view text, int depth) {
    if (depth > 2) fail("format: expected fields nested at most twice, got more");
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
      const char c = text[at++];
      if (c != '{' && c != '}') {
        out += c;
        continue;
      }
      if (at < text.size() && text[at] == c) {  // doubled
        out += c;
        ++at;
        continue;
      }
      if (c == '}') fail("format: expected '}}' for a brace, got '}'");
      const std::size_t end = end_of_field(text, at);
      out += field(text.substr(at, end - at), depth);
      at = end + 1;
      heap_->check_text_size(out.size());
    }
    return out;
  }

 private:
  static std::size_t end_of_field(std::string_view text, std::size_t at) {
    int n_open = 1;
    for (; at < text.size(); ++at) {
      if (text[at] == '{') ++n_open;
      if (text[at] == '}' && --n_open == 0) return at;
    }
    fail("format: expected '}', got the end of the text");
  }

  std::string field(std::string_view text, int depth) {
    const std::size_t name_end = std::min(text.find_first_of("!:"), text.size());
    Value value = value_of(text.substr(0, name_end));
    std::string_view rest = text.substr(name_end);
    if (rest.starts_with('!')) {
      if (rest.size() < 2 || (rest.size() > 2 && rest[2] != ':')) {
        fail("format: expected a conversion behind '!', got another text");
      }
      if (rest[1] == 'r') {
        value = heap_->text(represented(value, *heap_));
      } else if (rest[1] == 's') {
        value = printed_value(value, *heap_);
      } else {
        fail(fmt::format("format: expected the conversion s or r, got '{}'", rest[1]));
      }
      rest.remove_prefix(2);
    }
    if (rest.empty()) return formatted(value, "", *heap_);
    return formatted(value, run(rest.substr(1), depth + 1), *heap_);
  }

  Value value_of(std::string_view name) {
    const std::size_t end = std::min(name.find_first_of(".["), name.size());
    Value value = argument(name.substr(0, end));
    std::string_view rest = name.substr(end);
    while (!rest.empty()) {
      if (rest.front() == '.') {
        rest.remove_prefix(1);
        const std::size_t n = std::min(rest.find_first_of(".["), rest.size());
        if (n == 0) fail("format: expected an attribute behind '.', got none");
        value = get_attribute(value, rest.substr(0, n), *heap_);
        rest.remove_prefix(n);
      } else {
        const std::size_t close = rest.find(']');
        if (rest.front() != '[' || close == std::string_view::npos || close == 1) {
          fail("format: expected [item], got another text");
        }
        const std::string_view key = rest.substr(1, close - 1);
        const auto number = number_of(key);
        value = get_item(value, number ? Value::integer(*number) : heap_->text(std::string(key)),
                         *heap_);
        rest.remove_prefix(close + 1);
      }
    }
    return value;
  }

  static std::optional<std::int64_t> number_of(std::string_view text) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || text.starts_with('-')) {
      return std::nullopt;
    }
    return value;
  }

  Value argument(std::string_view name) {
    auto number = number_of(name);
    if (name.empty()) {
      if (n_automatic_ < 0) fail("format: expected numbers in all fields or in none, got both");
      number = n_automatic_++;
    } else if (number) {
      if (n_automatic_ > 0) fail("format: expected numbers in all fields or in none, got both");
      n_automatic_ = -1;
    }
    if (number) {
      if (*number >= static_cast<std::int64_t>(arguments_->positional.size())) {
        fail("format: expected an argument for every field, got fewer");
      }
      return arguments_->positional[static_cast<std::size_t>(*number)];
    }
    for (const auto& [given, value] : arguments_->named) {
      if (given == name) return value;
    }
    fail(fmt::format("format: expected an argument '{}', got none", name));
  }

  const Arguments* arguments_;
  Heap* heap_;
  std::int64_t n_automatic_ = 0;  // -1: fields are numbered explicitly
};

}  // namespace

Value format_text(const Value& self, const Arguments& arguments, Heap& heap) {
  return heap.text(Formatter(arguments, heap).run(self.as_text().bytes, 0),
                   self.as_text().is_markup);
}

Value format_text_map(const Value& self, const Arguments& arguments, Heap& heap) {
  const Parameters given("format_map", arguments, {""});
  if (!given.required(0).is_dict()) fail("format_map: expected a mapping, got another value");
  Arguments named;
  for (const auto& [key, value] : given[0].as_dict().items) {
    if (key.is_text()) named.named.emplace_back(key.as_text().bytes, value);
  }
  return format_text(self, named, heap);
}

}  // namespace outrider::jinja
