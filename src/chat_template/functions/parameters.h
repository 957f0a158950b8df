// SPDX-License-Identifier: Apache-2.0
// Matches the arguments of a call with a function's parameters.
#ifndef OUTRIDER_CHAT_TEMPLATE_FUNCTIONS_PARAMETERS_H_
#define OUTRIDER_CHAT_TEMPLATE_FUNCTIONS_PARAMETERS_H_

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "chat_template/values/operations.h"
#include "chat_template/values/value.h"

namespace outrider::jinja {

class Parameters {
 public:
  // Throws Problem for too many arguments, unknown names and arguments given twice. A parameter
  // with the name "" cannot be given by name. `function` must outlive the object.
  Parameters(std::string_view function, const Arguments& given,
             std::initializer_list<std::string_view> names)
      : function_(function), names_(names), values_(names.size()) {
    if (given.positional.size() > names_.size()) {
      fail(fmt::format("{}: expected at most {} arguments, got {}", function_, names_.size(),
                       given.positional.size()));
    }
    std::copy(given.positional.begin(), given.positional.end(), values_.begin());
    for (const auto& [name, value] : given.named) {
      const auto found = std::find(names_.begin(), names_.end(), std::string_view(name));
      if (found == names_.end() || name.empty()) {
        fail(fmt::format("{}: expected other arguments, got one called '{}'", function_, name));
      }
      Value& place = values_[static_cast<std::size_t>(found - names_.begin())];
      if (!place.is_absent()) {
        fail(fmt::format("{}: expected '{}' once, got it twice", function_, name));
      }
      place = value;
    }
  }

  bool given(std::size_t i) const { return !values_[i].is_absent(); }
  // As given, or absent.
  const Value& operator[](std::size_t i) const { return values_[i]; }
  const Value& required(std::size_t i) const {
    if (!given(i)) fail(fmt::format("{}: expected argument {}, got none", function_, i + 1));
    return values_[i];
  }
  Value value(std::size_t i, Value otherwise) const { return given(i) ? values_[i] : otherwise; }
  bool flag(std::size_t i, bool otherwise) const {
    return given(i) ? truth(values_[i]) : otherwise;
  }
  std::int64_t integer(std::size_t i, std::int64_t otherwise) const {
    return given(i) ? integer_of(values_[i], function_) : otherwise;
  }
  const std::string& text(std::size_t i) const { return text_of(required(i), function_); }
  bool is_none_or_absent(std::size_t i) const { return !given(i) || values_[i].is_none(); }

 private:
  std::string_view function_;
  std::vector<std::string_view> names_;
  std::vector<Value> values_;
};

}  // namespace outrider::jinja

#endif  // OUTRIDER_CHAT_TEMPLATE_FUNCTIONS_PARAMETERS_H_
