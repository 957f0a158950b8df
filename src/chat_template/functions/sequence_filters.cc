// SPDX-License-Identifier: Apache-2.0
// Filters that take items of lists or rearrange them.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <unordered_set>

#include "chat_template/functions/filters.h"
#include "chat_template/functions/parameters.h"
#include "chat_template/values/attribute_path.h"
#include "chat_template/values/operations.h"

namespace outrider::jinja {
namespace {

// An iterator over the result of `make`, which is called when the first item is requested.
Value iterator_over(std::string name, const std::vector<Value>& over, Heap& heap,
                    std::function<std::vector<Value>()> make) {
  struct State {
    std::vector<Value> items;
    std::size_t at = 0;
    bool made = false;
  };
  auto state = std::make_shared<State>();
  return heap.iterator(std::move(name), over, [state, &heap, make = std::move(make)] {
    heap.count_steps(1);
    if (!std::exchange(state->made, true)) state->items = make();
    return state->at < state->items.size() ? state->items[state->at++] : Value();
  });
}

Value default_value(const Value& subject, const Arguments& arguments, Heap& heap) {
  const Parameters given("default", arguments, {"default_value", "boolean"});
  const bool stands = !subject.is_undefined() && (!given.flag(1, false) || truth(subject));
  return stands ? subject : given.given(0) ? given[0] : heap.text("");
}

Value list(const Value& subject, const Arguments& arguments, Heap& heap) {
  const Parameters given("list", arguments, {});
  return heap.list(list_of(subject, heap));
}

Value first(const Value& subject, const Arguments& arguments, Heap& heap) {
  const Parameters given("first", arguments, {});
  const Value item = items_of(subject, heap)();
  return item.is_absent() ? heap.undefined("expected a first item, got an empty sequence") : item;
}

Value last(const Value& subject, const Arguments& arguments, Heap& heap) {
  const Parameters given("last", arguments, {});
  if (subject.is_sequence() && !subject.as_sequence().items.empty()) {
    return subject.as_sequence().items.back();
  }
  const std::vector<Value> items = reversed(subject, heap);
  return items.empty() ? heap.undefined("expected a last item, got an empty sequence")
                       : items.front();
}

Value items(const Value& subject, const Arguments& arguments, Heap& heap) {
  const Parameters given("items", arguments, {});
  return iterator_over("items", {subject}, heap, [subject, &heap] {
    if (subject.is_undefined()) return std::vector<Value>();
    if (!subject.is_dict()) {
      fail(fmt::format("items: expected a mapping, got {}", type_name(subject)));
    }
    return list_of(heap.dict_view(DictView::Part::items, subject), heap);
  });
}

Value reverse(const Value& subject, const Arguments& arguments, Heap& heap) {
  const Parameters given("reverse", arguments, {});
  if (subject.is_text()) {
    const std::u32string characters = code_points(subject.as_text().bytes);
    return heap.text(utf8_of(std::u32string(characters.rbegin(), characters.rend())),
                     subject.as_text().is_markup);
  }
  if (subject.is(Kind::iterator)) {  // reads it to its end
    std::vector<Value> all = list_of(subject, heap);
    std::reverse(all.begin(), all.end());
    return heap.list(std::move(all));
  }
  std::vector<Value> all = reversed(subject, heap);
  return iterator_over("reverse", {subject}, heap, [all = std::move(all)] { return all; });
}

Value batch(const Value& subject, const Arguments& arguments, Heap& heap) {
  const Parameters given("batch", arguments, {"linecount", "fill_with"});
  const Value count = given.required(0);
  const Value fill = given[1];
  return iterator_over("batch", {subject, fill}, heap, [subject, count, fill, &heap] {
    const bool fills = !fill.is_absent() && !fill.is_none();
    std::vector<Value> rows;
    std::vector<Value> row;
    const auto next = items_of(subject, heap);
    for (Value item = next(); !item.is_absent(); item = next()) {
      if (equal(count, Value::integer(static_cast<std::int64_t>(row.size())), heap)) {
        rows.push_back(heap.list(std::exchange(row, {})));
      }
      row.push_back(item);
    }
    if (row.empty()) return rows;
    if (fills) {
      const std::int64_t width = integer_of(count, "batch");
      while (static_cast<std::int64_t>(row.size()) < width) {
        heap.count_memory(sizeof(Value));
        row.push_back(fill);
      }
    }
    rows.push_back(heap.list(std::move(row)));
    return rows;
  });
}

Value slice(const Value& subject, const Arguments& arguments, Heap& heap) {
  const Parameters given("slice", arguments, {"slices", "fill_with"});
  const Value count = given.required(0);
  const Value fill = given[1];
  return iterator_over("slice", {subject, fill}, heap, [subject, count, fill, &heap] {
    const bool fills = !fill.is_absent() && !fill.is_none();
    const std::vector<Value> all = list_of(subject, heap);
    const std::int64_t n_slices = integer_of(count, "slice");
    if (n_slices == 0) fail("slice: expected a number of slices, got 0");
    std::vector<Value> made;
    std::size_t at = 0;
    const auto n = static_cast<std::int64_t>(all.size());
    for (std::int64_t i = 0; i < n_slices; ++i) {
      heap.count_steps(1);
      const bool has_extra = i < n % n_slices;
      const auto size = static_cast<std::size_t>(n / n_slices + (has_extra ? 1 : 0));
      std::vector<Value> part(all.begin() + static_cast<std::ptrdiff_t>(at),
                              all.begin() + static_cast<std::ptrdiff_t>(at + size));
      at += size;
      if (fills && !has_extra) part.push_back(fill);
      made.push_back(heap.list(std::move(part)));
    }
    return made;
  });
}

Value unique(const Value& subject, const Arguments& arguments, Heap& heap) {
  const Parameters given("unique", arguments, {"case_sensitive", "attribute"});
  const bool with_case = given.flag(0, false);
  const Value attribute = given[1];
  return iterator_over("unique", {subject}, heap, [subject, with_case, attribute, &heap] {
    const AttributePath path(attribute, heap);
    std::unordered_set<std::string> seen;
    std::vector<Value> kept;
    const auto next = items_of(subject, heap);
    for (Value item = next(); !item.is_absent(); item = next()) {
      const Value key = path.of(item);
      std::string spelled = hash_key(with_case ? key : without_case(key, heap));
      heap.count_memory(spelled.size());
      if (seen.insert(std::move(spelled)).second) kept.push_back(item);
    }
    return kept;
  });
}

Value attribute(const Value& subject, const Arguments& arguments, Heap& heap) {
  const Parameters given("attr", arguments, {"name"});
  const std::string& name = given.text(0);
  if (subject.is_undefined()) fail_undefined(subject);
  const Value found = member_of(subject, name, heap);
  if (!found.is_absent()) return found;
  return heap.undefined(
      fmt::format("expected an attribute '{}' of {}, got none", name, type_name(subject)));
}

struct NamedFilter {
  std::string_view name;
  Filter filter;
};
constexpr NamedFilter kFilters[] = {
    {"default", default_value}, {"d", default_value}, {"list", list},
    {"first", first},           {"last", last},       {"items", items},
    {"reverse", reverse},       {"batch", batch},     {"slice", slice},
    {"unique", unique},         {"attr", attribute},
};

}  // namespace

Filter find_sequence_filter(std::string_view name) {
  const auto* found = std::find_if(std::begin(kFilters), std::end(kFilters),
                                   [name](const NamedFilter& one) { return one.name == name; });
  return found == std::end(kFilters) ? nullptr : found->filter;
}

}  // namespace outrider::jinja
