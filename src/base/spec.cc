// SPDX-License-Identifier: Apache-2.0
#include "base/spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "outrider/error.h"
#include "outrider/spec_description.h"

namespace outrider {
namespace {

// Splits at unescaped commas. In each part, escapes are resolved and the first unescaped '=' is
// noted.
struct Part {
  std::string text;
  std::size_t equals = std::string::npos;
};

std::vector<Part> split(std::string_view text) {
  std::vector<Part> parts(1);
  for (std::size_t index = 0; index < text.size(); ++index) {
    Part& part = parts.back();
    if (text[index] == '\\' && index + 1 < text.size()) {
      part.text += text[++index];
    } else if (text[index] == ',') {
      parts.emplace_back();
    } else {
      if (text[index] == '=' && part.equals == std::string::npos) part.equals = part.text.size();
      part.text += text[index];
    }
  }
  return parts;
}

bool is_key(const Part& part) {
  if (part.equals == std::string::npos || part.equals == 0) return false;
  return std::all_of(part.text.begin(),
                     part.text.begin() + static_cast<std::ptrdiff_t>(part.equals),
                     [](char c) { return (c >= 'a' && c <= 'z') || c == '_' || c == '-'; });
}

// Puts a backslash before characters that the language would read as punctuation.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '\\' || c == ',' || c == '=') result += '\\';
    result += c;
  }
  return result;
}

std::string join(const std::vector<std::string_view>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

Spec Spec::parse(std::string_view what, std::string_view text) {
  Spec spec;
  spec.what_ = what;
  spec.text_ = text;
  const std::size_t colon = text.find(':');
  spec.name_ = text.substr(0, colon);
  if (spec.name_.empty()) {
    throw UsageError(fmt::format("read {}", what), spec.text_, "a name", "nothing");
  }
  if (colon == std::string_view::npos) return spec;
  const std::vector<Part> parts = split(text.substr(colon + 1));
  for (const Part& part : parts) {
    if (is_key(part)) {
      spec.keys_.emplace_back(part.text.substr(0, part.equals), part.text.substr(part.equals + 1));
    } else if (spec.keys_.empty()) {
      spec.values_.push_back(part.text);
    } else {
      throw UsageError(fmt::format("read {}", what), spec.text_, "key=value after a comma",
                       part.text.empty() ? "nothing" : part.text);
    }
  }
  return spec;
}

const std::string& Spec::required_value(std::string_view form) const {
  if (value().empty()) {
    throw UsageError(fmt::format("read {}", what_), text_, std::string(form), "nothing");
  }
  return value();
}

void Spec::require_name(const std::vector<std::string_view>& known) const {
  if (std::find(known.begin(), known.end(), name_) == known.end()) {
    throw UsageError(fmt::format("read {}", what_), text_, fmt::format("one of {}", join(known)),
                     name_);
  }
}

const std::string& Spec::value() const {
  static const std::string none;
  if (values_.size() > 1) {
    throw UsageError(fmt::format("read {}", what_), text_, "key=value after a comma",
                     values_[1].empty() ? "nothing" : values_[1]);
  }
  return values_.empty() ? none : values_.front();
}

void Spec::require_no_value() const {
  for (const std::string& value : values_) {
    if (value.empty() && values_.size() == 1) continue;  // a bare colon
    throw UsageError(fmt::format("read {}", what_), text_, "key=value after the colon",
                     value.empty() ? "nothing" : value);
  }
}

void Spec::require_keys(const std::vector<std::string_view>& known,
                        const std::vector<std::string_view>& repeatable) const {
  const auto holds = [](const std::vector<std::string_view>& names, const std::string& key) {
    return std::find(names.begin(), names.end(), key) != names.end();
  };
  for (const auto& [key, value] : keys_) {
    if (texts(key).size() > 1 && !holds(repeatable, key)) {
      throw UsageError(fmt::format("read {}", what_), text_, "each key once",
                       fmt::format("{} twice", key));
    }
    if (!holds(known, key)) {
      throw UsageError(
          fmt::format("read {}", what_), text_,
          known.empty() ? std::string("no keys") : fmt::format("keys among {}", join(known)), key);
    }
  }
}

void Spec::require_described_keys(std::span<const KeyDescription> known) const {
  std::vector<std::string_view> names;
  std::vector<std::string_view> repeatable;
  names.reserve(known.size());
  for (const KeyDescription& key : known) {
    names.push_back(key.name);
    if (key.repeatable) repeatable.emplace_back(key.name);
  }
  require_keys(names, repeatable);
}

double Spec::to_number(std::string_view what, const std::string& text, double min,
                       double max) const {
  double number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc() || end != text.data() + text.size() ||
      !(number >= min && number <= max)) {
    throw UsageError(fmt::format("read {}", what_), fmt::format("{} {}", text_, what),
                     fmt::format("a number from {} to {}", min, max),
                     text.empty() ? "nothing" : text);
  }
  return number;
}

int Spec::to_integer(std::string_view what, double value) const {
  if (value != std::floor(value)) {
    throw UsageError(fmt::format("read {}", what_), fmt::format("{} {}", text_, what),
                     "a whole number", fmt::format("{}", value));
  }
  return static_cast<int>(value);
}

std::optional<double> Spec::number(std::string_view key, double min, double max) const {
  const std::optional<std::string> given = text(key);
  if (!given) return std::nullopt;
  return to_number(key, *given, min, max);
}

std::optional<int> Spec::integer(std::string_view key, int min, int max) const {
  const std::optional<double> value = number(key, min, max);
  if (!value) return std::nullopt;
  return to_integer(key, *value);
}

std::optional<std::string> Spec::text(std::string_view key) const {
  for (const auto& [name, text] : keys_) {
    if (name == key) return text;
  }
  return std::nullopt;
}

std::vector<std::string> Spec::texts(std::string_view key) const {
  std::vector<std::string> all;
  for (const auto& [name, text] : keys_) {
    if (name == key) all.push_back(text);
  }
  return all;
}

std::optional<std::string> Spec::choice(std::string_view key,
                                        std::initializer_list<std::string_view> known) const {
  const std::optional<std::string> given = text(key);
  if (given && std::find(known.begin(), known.end(), *given) == known.end()) {
    throw UsageError(fmt::format("read {}", what_), fmt::format("{} {}", text_, key),
                     fmt::format("one of {}", join(known)), given->empty() ? "nothing" : *given);
  }
  return given;
}

std::vector<int> Spec::integers(int min, int max) const {
  std::vector<int> numbers;
  for (const std::string& value : values_) {
    numbers.push_back(to_integer("values", to_number("values", value, min, max)));
  }
  return numbers;
}

std::string Spec::without(std::string_view key) const {
  std::string text = name_;
  char before = ':';
  for (const std::string& value : values_) {
    text += before + escaped(value);
    before = ',';
  }
  for (const auto& [name, value] : keys_) {
    if (name == key) continue;
    text += fmt::format("{}{}={}", before, name, escaped(value));
    before = ',';
  }
  return text;
}

std::string Spec::with(std::string_view key, std::string_view value) const {
  const std::string others = without(key);
  const bool alone = values_.empty() && others == name_;
  return fmt::format("{}{}{}={}", others, alone ? ':' : ',', key, escaped(value));
}

std::vector<std::string> split_specs(std::string_view list, char separator) {
  std::vector<std::string> specs;
  if (list.empty()) return specs;
  std::size_t begin = 0;
  const auto end_part = [&](std::size_t end) {
    std::string part(list.substr(begin, end - begin));
    begin = end + 1;
    if (separator == '+') {
      for (std::size_t at = part.find("\\+"); at != std::string::npos;
           at = part.find("\\+", at + 1)) {
        part.erase(at, 1);
      }
    }
    const bool continues =
        separator == ',' && !specs.empty() && is_key({.text = part, .equals = part.find('=')});
    if (continues) {
      specs.back() += ',' + part;
    } else {
      specs.push_back(std::move(part));
    }
  };
  for (std::size_t index = 0; index < list.size(); ++index) {
    if (list[index] == '\\') {
      ++index;
    } else if (list[index] == separator) {
      end_part(index);
    }
  }
  end_part(list.size());
  return specs;
}

std::string escape_spec_value(std::string_view value) {
  std::string escaped;
  for (const char c : value) {
    if (c == '\\' || c == ',' || c == '=') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

}  // namespace outrider
