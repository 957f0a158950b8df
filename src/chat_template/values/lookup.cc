// SPDX-License-Identifier: Apache-2.0
#include "chat_template/values/lookup.h"

#include <fmt/format.h>

#include <algorithm>

#include "chat_template/functions/methods.h"
#include "chat_template/loop.h"
#include "chat_template/values/operations.h"
#include "chat_template/values/printed.h"

namespace outrider::jinja {
namespace {

Value attribute_of(const Value& value, std::string_view name, Heap& heap) {
  switch (value.kind()) {
    case Kind::name_space: {
      const auto& attributes = value.as_namespace().attributes;
      const auto found = std::find_if(attributes.begin(), attributes.end(),
                                      [name](const auto& one) { return one.first == name; });
      return found == attributes.end() ? Value() : found->second;
    }
    case Kind::loop:
      return value.as_loop().attribute(name, value, heap);
    case Kind::function:
      return value.as_function().attribute ? value.as_function().attribute(name) : Value();
    case Kind::tuple:
      if (!value.as_sequence().is_group) return {};
      if (name == "grouper") return value.as_sequence().items[0];
      if (name == "list") return value.as_sequence().items[1];
      return {};
    case Kind::range: {
      const Range& range = value.as_range();
      if (name == "start") return Value::integer(range.start);
      if (name == "step") return Value::integer(range.step);
      if (name == "stop") return Value::integer(range.stop);
      return {};
    }
    default:
      return {};
  }
}

Value missing(const Value& value, std::string_view name, Heap& heap) {
  return heap.undefined(
      fmt::format("expected an attribute '{}' of {}, got none", name, type_name(value)));
}

}  // namespace

Value member_of(const Value& value, std::string_view name, Heap& heap) {
  if (name.starts_with('_')) return {};
  const Value attribute = attribute_of(value, name, heap);
  if (!attribute.is_absent()) return attribute;
  if (const Method method = find_method(value, name)) {
    Function bound{.name = fmt::format("{}.{}", type_name(value), name),
                   .call = [value, method, &heap](const Arguments& arguments) {
                     return method(value, arguments, heap);
                   }};
    bound.depth = depth_of(value);
    return heap.function(std::move(bound));
  }
  if (is_changing_method(value, name)) {
    return heap.undefined(
        fmt::format("expected a method that changes nothing, got {}.{}", type_name(value), name));
  }
  return {};
}

Value get_attribute(const Value& value, std::string_view name, Heap& heap) {
  if (value.is_undefined()) fail_undefined(value);
  const Value member = member_of(value, name, heap);
  if (!member.is_absent()) return member;
  if (value.is_dict()) {
    if (const Value* item = find(value.as_dict(), name)) return *item;
  }
  return missing(value, name, heap);
}

Value get_item(const Value& value, const Value& key, Heap& heap) {
  if (value.is_undefined()) fail_undefined(value);
  const Value item = item_of(value, key, heap);
  if (!item.is_absent()) return item;
  if (key.is(Kind::slice)) {
    fail(fmt::format("expected something to take a slice of, got {}", type_name(value)));
  }
  if (key.is_text()) {
    const Value member = member_of(value, key.as_text().bytes, heap);
    return member.is_absent() ? missing(value, key.as_text().bytes, heap) : member;
  }
  return missing(value, represented(key, heap), heap);
}

}  // namespace outrider::jinja
