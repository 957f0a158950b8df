// SPDX-License-Identifier: Apache-2.0
// map, select, reject, selectattr and rejectattr, computed lazily, item by item.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "chat_template/functions/checks.h"
#include "chat_template/functions/filters.h"
#include "chat_template/functions/parameters.h"
#include "chat_template/values/attribute_path.h"
#include "chat_template/values/operations.h"

namespace outrider::jinja {
namespace {

// An iterator over the items of `subject`. `prepare` is called before the first item and returns
// the step for each; an absent result drops the item. A false value has no items.
using Step = std::function<Value(const Value& item)>;
Value stepwise(std::string name, const Value& subject, const Arguments& arguments, Heap& heap,
               std::function<Step()> prepare) {
  struct State {
    std::function<Value()> next;
    Step step;
  };
  std::vector<Value> over = arguments.positional;
  over.push_back(subject);
  for (const auto& named : arguments.named) over.push_back(named.second);
  auto state = std::make_shared<State>();
  return heap.iterator(std::move(name), over,
                       [state, subject, &heap, prepare = std::move(prepare)] {
                         if (!truth(subject)) return Value();
                         if (!state->step) {
                           state->step = prepare();
                           state->next = items_of(subject, heap);
                         }
                         for (Value item = state->next(); !item.is_absent(); item = state->next()) {
                           const Value made = state->step(item);
                           if (!made.is_absent()) return made;
                         }
                         return Value();
                       });
}

Arguments without_first(const Arguments& arguments, std::size_t n) {
  Arguments rest = arguments;
  rest.positional.erase(rest.positional.begin(),
                        rest.positional.begin() + static_cast<std::ptrdiff_t>(n));
  return rest;
}

Step map_by_attribute(const Arguments& arguments, Heap& heap) {
  const Parameters given("map", arguments, {"attribute", "default"});
  return [path = AttributePath(given[0], heap), otherwise = given[1]](const Value& item) {
    return path.of(item, otherwise);
  };
}

Value map(const Value& subject, const Arguments& arguments, Heap& heap) {
  return stepwise("map", subject, arguments, heap, [arguments, &heap]() -> Step {
    const bool by_attribute =
        arguments.positional.empty() &&
        std::any_of(arguments.named.begin(), arguments.named.end(),
                    [](const auto& named) { return named.first == "attribute"; });
    if (by_attribute) return map_by_attribute(arguments, heap);
    if (arguments.positional.empty()) fail("map: expected the name of a filter, got none");
    return [name = text_of(arguments.positional.front(), "map"), rest = without_first(arguments, 1),
            &heap](const Value& item) { return apply_filter(name, item, rest, heap); };
  });
}

template <bool kKeep, bool kOfAttribute>
Value choose(const Value& subject, const Arguments& arguments, Heap& heap) {
  return stepwise("select", subject, arguments, heap, [arguments, &heap]() -> Step {
    constexpr std::size_t kOffset = kOfAttribute ? 1 : 0;
    if (arguments.positional.size() < kOffset) fail("selectattr: expected an attribute, got none");
    const AttributePath path(kOfAttribute ? arguments.positional.front() : Value(), heap);
    if (arguments.positional.size() == kOffset) {
      return [path](const Value& item) { return truth(path.of(item)) == kKeep ? item : Value(); };
    }
    return [path, name = text_of(arguments.positional[kOffset], "select"),
            rest = without_first(arguments, kOffset + 1), &heap](const Value& item) {
      return apply_check(name, path.of(item), rest, heap) == kKeep ? item : Value();
    };
  });
}

struct NamedFilter {
  std::string_view name;
  Filter filter;
};
constexpr NamedFilter kFilters[] = {
    {"map", map},
    {"select", choose<true, false>},
    {"reject", choose<false, false>},
    {"selectattr", choose<true, true>},
    {"rejectattr", choose<false, true>},
};

}  // namespace

Filter find_selection_filter(std::string_view name) {
  const auto* found = std::find_if(std::begin(kFilters), std::end(kFilters),
                                   [name](const NamedFilter& one) { return one.name == name; });
  return found == std::end(kFilters) ? nullptr : found->filter;
}

}  // namespace outrider::jinja
