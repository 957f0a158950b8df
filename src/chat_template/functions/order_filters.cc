// SPDX-License-Identifier: Apache-2.0
// Filters that compare items with each other.
#include <fmt/format.h>

#include <algorithm>

#include "chat_template/functions/filters.h"
#include "chat_template/functions/parameters.h"
#include "chat_template/values/attribute_path.h"
#include "chat_template/values/operations.h"
#include "chat_template/values/text_search.h"

namespace outrider::jinja {
namespace {

struct Keyed {
  Value key;
  Value item;
};

// Stable in both directions, as in Python.
void sort_by_key(std::vector<Keyed>& all, bool backwards, Heap& heap) {
  std::stable_sort(all.begin(), all.end(), [&](const Keyed& a, const Keyed& b) {
    return backwards ? less(b.key, a.key, heap) : less(a.key, b.key, heap);
  });
}

std::vector<Value> items_in(const std::vector<Keyed>& all) {
  std::vector<Value> items;
  items.reserve(all.size());
  for (const Keyed& one : all) items.push_back(one.item);
  return items;
}

Value sort(const Value& subject, const Arguments& arguments, Heap& heap) {
  const Parameters given("sort", arguments, {"reverse", "case_sensitive", "attribute"});
  const bool with_case = given.flag(1, false);
  std::vector<AttributePath> paths;
  if (given.given(2) && given[2].is_text()) {
    for (const std::string_view part : split_at(given.text(2), ",", -1, false)) {
      paths.emplace_back(heap.text(std::string(part)), heap);
    }
  } else {
    paths.emplace_back(given[2], heap);
  }
  std::vector<Keyed> all;
  for (const Value& item : list_of(subject, heap)) {
    std::vector<Value> keys;
    for (const AttributePath& path : paths) {
      const Value key = path.of(item);
      keys.push_back(with_case ? key : without_case(key, heap));
    }
    all.push_back({heap.list(std::move(keys)), item});
  }
  sort_by_key(all, given.flag(0, false), heap);
  return heap.list(items_in(all));
}

Value dictsort(const Value& subject, const Arguments& arguments, Heap& heap) {
  const Parameters given("dictsort", arguments, {"case_sensitive", "by", "reverse"});
  const std::string by = given.given(1) ? given.text(1) : "key";
  if (by != "key" && by != "value") fail("dictsort: expected by='key' or 'value', got another");
  if (subject.is_undefined()) fail_undefined(subject);
  if (!subject.is_dict()) {
    fail(fmt::format("dictsort: expected a mapping, got {}", type_name(subject)));
  }
  std::vector<Keyed> all;
  for (const auto& [key, value] : subject.as_dict().items) {
    const Value sorted_by = by == "key" ? key : value;
    all.push_back({given.flag(0, false) ? sorted_by : without_case(sorted_by, heap),
                   heap.tuple({key, value})});
  }
  sort_by_key(all, given.flag(2, false), heap);
  return heap.list(items_in(all));
}

Value groupby(const Value& subject, const Arguments& arguments, Heap& heap) {
  const Parameters given("groupby", arguments, {"attribute", "default", "case_sensitive"});
  const AttributePath path(given.required(0), heap);
  const bool with_case = given.flag(2, false);
  std::vector<Keyed> all;
  for (const Value& item : list_of(subject, heap)) {
    const Value key = path.of(item, given[1]);
    all.push_back({with_case ? key : without_case(key, heap), item});
  }
  sort_by_key(all, false, heap);
  std::vector<Value> groups;
  for (std::size_t begin = 0; begin < all.size();) {
    std::vector<Value> members;
    std::size_t end = begin;
    for (; end < all.size() && equal(all[begin].key, all[end].key, heap); ++end) {
      members.push_back(all[end].item);
    }
    if (end == begin) members.push_back(all[end++].item);  // NaN equals nothing
    const Value key = with_case ? all[begin].key : path.of(all[begin].item, given[1]);
    groups.push_back(heap.group(key, heap.list(std::move(members))));
    begin = end;
  }
  return heap.list(std::move(groups));
}

template <bool kLargest>
Value extreme(const Value& subject, const Arguments& arguments, Heap& heap) {
  const Parameters given("min, max", arguments, {"case_sensitive", "attribute"});
  const AttributePath path(given[1], heap);
  const bool with_case = given.flag(0, false);
  Keyed best;
  const auto next = items_of(subject, heap);
  for (Value item = next(); !item.is_absent(); item = next()) {
    Value key = path.of(item);
    if (!with_case) key = without_case(key, heap);
    const bool is_better =
        best.item.is_absent() || (kLargest ? less(best.key, key, heap) : less(key, best.key, heap));
    if (is_better) best = {key, item};
  }
  return best.item.is_absent() ? heap.undefined("expected items to compare, got none") : best.item;
}

struct NamedFilter {
  std::string_view name;
  Filter filter;
};
constexpr NamedFilter kFilters[] = {
    {"sort", sort},          {"dictsort", dictsort}, {"groupby", groupby},
    {"min", extreme<false>}, {"max", extreme<true>},
};

}  // namespace

Filter find_order_filter(std::string_view name) {
  const auto* found = std::find_if(std::begin(kFilters), std::end(kFilters),
                                   [name](const NamedFilter& one) { return one.name == name; });
  return found == std::end(kFilters) ? nullptr : found->filter;
}

}  // namespace outrider::jinja
