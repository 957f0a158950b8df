// SPDX-License-Identifier: Apache-2.0
// Methods of lists, tuples, ranges and dicts.
#include <algorithm>
#include <array>

#include "chat_template/functions/methods.h"
#include "chat_template/functions/parameters.h"
#include "chat_template/values/operations.h"

namespace outrider::jinja {
namespace {

Value count(const Value& self, const Arguments& arguments, Heap& heap) {
  const Parameters given("count", arguments, {""});
  std::int64_t n = 0;
  const auto next = items_of(self, heap);
  for (Value item = next(); !item.is_absent(); item = next()) {
    if (equal(item, given.required(0), heap)) ++n;
  }
  return Value::integer(n);
}

Value index(const Value& self, const Arguments& arguments, Heap& heap) {
  const Parameters given("index", arguments, {"", "", ""});
  const std::int64_t n = length(self, heap);
  const auto bound = [&](std::size_t i, std::int64_t otherwise) {
    const std::int64_t place = given.integer(i, otherwise);
    return place < 0 ? std::max<std::int64_t>(place + n, 0) : place;
  };
  const std::int64_t begin = bound(1, 0);
  const std::int64_t end = bound(2, n);
  const auto next = items_of(self, heap);
  std::int64_t at = 0;
  for (Value item = next(); !item.is_absent(); item = next(), ++at) {
    if (at >= begin && at < end && equal(item, given.required(0), heap)) return Value::integer(at);
  }
  fail("index: expected one of the items, got another value");
}

Value copy(const Value& self, const Arguments& arguments, Heap& /*heap*/) {
  const Parameters given("copy", arguments, {});
  return self;  // both are immutable
}

Value get(const Value& self, const Arguments& arguments, Heap& /*heap*/) {
  const Parameters given("get", arguments, {"", ""});
  const Value* found = find(self.as_dict(), given.required(0));
  return found == nullptr ? given.value(1, Value::none()) : *found;
}

template <DictView::Part kPart>
Value view(const Value& self, const Arguments& arguments, Heap& heap) {
  const Parameters given("items, keys, values", arguments, {});
  return heap.dict_view(kPart, self);
}

}  // namespace

Method find_container_method(const Value& self, std::string_view name) {
  switch (self.kind()) {
    case Kind::list:
      if (name == "copy") return copy;
      [[fallthrough]];
    case Kind::tuple:
    case Kind::range:
      if (name == "count") return count;
      if (name == "index") return index;
      return nullptr;
    case Kind::dict:
      if (name == "get") return get;
      if (name == "items") return view<DictView::Part::items>;
      if (name == "keys") return view<DictView::Part::keys>;
      if (name == "values") return view<DictView::Part::values>;
      if (name == "copy") return copy;
      return nullptr;
    default:
      return nullptr;
  }
}

Method find_method(const Value& self, std::string_view name) {
  return self.is_text() ? find_text_method(name) : find_container_method(self, name);
}

bool is_changing_method(const Value& self, std::string_view name) {
  constexpr std::array<std::string_view, 8> kOfLists = {"append", "clear",  "extend",  "insert",
                                                        "pop",    "remove", "reverse", "sort"};
  constexpr std::array<std::string_view, 5> kOfDicts = {"clear", "pop", "popitem", "setdefault",
                                                        "update"};
  if (self.is(Kind::list))
    return std::find(kOfLists.begin(), kOfLists.end(), name) != kOfLists.end();
  return self.is_dict() && std::find(kOfDicts.begin(), kOfDicts.end(), name) != kOfDicts.end();
}

}  // namespace outrider::jinja
