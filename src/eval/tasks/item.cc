// SPDX-License-Identifier: Apache-2.0
#include "eval/tasks/item.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>

#include "outrider/error.h"

namespace outrider::eval {
namespace {

using nlohmann::json;

const json* find_in(const json& value, std::string_view path) {
  if (path.empty()) return &value;
  if (value.is_object()) {
    if (const auto whole = value.find(std::string(path)); whole != value.end()) return &*whole;
  }
  const std::size_t point = path.find('.');
  const std::string_view name = path.substr(0, point);
  const std::string_view rest =
      point == std::string_view::npos ? std::string_view() : path.substr(point + 1);
  if (value.is_object()) {
    const auto found = value.find(std::string(name));
    return found == value.end() ? nullptr : find_in(*found, rest);
  }
  if (value.is_array()) {
    std::size_t index = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
    const bool whole = error == std::errc() && end == name.data() + name.size();
    return whole && index < value.size() ? find_in(value[index], rest) : nullptr;
  }
  return nullptr;
}

}  // namespace

const json* Item::find(std::string_view path) const {
  const json* found = find_in(fields, path);
  return found == nullptr || found->is_null() ? nullptr : found;
}

std::optional<std::string> text_of(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number() || value.is_boolean()) return value.dump();
  if (!value.is_array()) return std::nullopt;
  std::string text;
  for (const json& element : value) {
    const std::optional<std::string> line = element.is_array() ? std::nullopt : text_of(element);
    if (!line) return std::nullopt;
    if (&element != &value.front()) text += '\n';
    text += *line;
  }
  return text;
}

Template Template::parse(std::string_view text, std::string_view object) {
  Template result;
  std::string plain;
  const auto flush = [&] {
    if (!plain.empty()) result.parts_.push_back({.text = plain, .is_field = false});
    plain.clear();
  };
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    const bool doubled = at + 1 < text.size() && text[at + 1] == c;
    if ((c == '{' || c == '}') && doubled) {
      plain += c;
      ++at;
    } else if (c == '{') {
      const std::size_t end = text.find('}', at);
      const std::string_view name =
          end == std::string_view::npos ? std::string_view() : text.substr(at + 1, end - at - 1);
      if (name.empty() || name.find_first_of("{ \n") != std::string_view::npos) {
        throw Error("read task", object, "{field}, or {{ for a brace",
                    std::string(text.substr(at, 20)));
      }
      flush();
      result.parts_.push_back({.text = std::string(name), .is_field = true});
      at = end;
    } else if (c == '}') {
      throw Error("read task", object, "}} for a brace", "} without its {");
    } else {
      plain += c;
    }
  }
  flush();
  return result;
}

std::string Template::render(
    const Item& item,
    const std::vector<std::pair<std::string_view, std::string_view>>& more) const {
  std::string text;
  for (const Part& part : parts_) {
    if (!part.is_field) {
      text += part.text;
      continue;
    }
    const auto given = std::find_if(more.begin(), more.end(),
                                    [&](const auto& pair) { return pair.first == part.text; });
    if (given != more.end()) {
      text += given->second;
      continue;
    }
    const json* value = item.find(part.text);
    const std::optional<std::string> field = value == nullptr ? std::nullopt : text_of(*value);
    if (!field) {
      throw Error("read item", item.place, fmt::format("a text in \"{}\"", part.text),
                  value == nullptr ? "no such field" : fmt::format("{}", value->type_name()));
    }
    text += *field;
  }
  return text;
}

bool Template::has_field(std::string_view field) const {
  return std::any_of(parts_.begin(), parts_.end(),
                     [&](const Part& part) { return part.is_field && part.text == field; });
}

}  // namespace outrider::eval
