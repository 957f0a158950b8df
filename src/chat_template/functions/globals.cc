// SPDX-License-Identifier: Apache-2.0
#include "chat_template/functions/globals.h"

#include <fmt/format.h>

#include <limits>
#include <memory>

#include "chat_template/functions/parameters.h"
#include "chat_template/values/operations.h"
#include "chat_template/values/printed.h"
#include "chat_template/values/time_text.h"

namespace outrider::jinja {
namespace {

Value range(const Arguments& arguments, Heap& heap) {
  const Parameters given("range", arguments, {"", "", ""});
  const std::int64_t first = integer_of(given.required(0), "range");
  const std::int64_t start = given.given(1) ? first : 0;
  const std::int64_t stop = given.given(1) ? given.integer(1, 0) : first;
  const std::int64_t step = given.integer(2, 1);
  if (step == 0) fail("range: expected a step other than 0, got 0");
  std::int64_t length = 0;
  // Unsigned, so that no difference overflows.
  const auto distance = [](std::int64_t low, std::int64_t high) {
    return static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  };
  const std::uint64_t stride = step > 0 ? static_cast<std::uint64_t>(step)
                                        : std::uint64_t{0} - static_cast<std::uint64_t>(step);
  std::uint64_t count = 0;
  if (step > 0 && start < stop) count = (distance(start, stop) - 1) / stride + 1;
  if (step < 0 && start > stop) count = (distance(stop, start) - 1) / stride + 1;
  if (count > static_cast<std::uint64_t>(kLongestRange)) {
    fail(fmt::format("range: expected at most {} numbers, got more", kLongestRange));
  }
  length = static_cast<std::int64_t>(count);
  return heap.range({.start = start, .stop = stop, .step = step, .length = length});
}

std::vector<std::pair<Value, Value>> pairs_of(const Value& value, std::string_view function,
                                              Heap& heap) {
  if (value.is_dict()) return value.as_dict().items;
  std::vector<std::pair<Value, Value>> items;
  for (const Value& item : list_of(value, heap)) {
    const std::vector<Value> pair = list_of(item, heap);
    if (pair.size() != 2) fail(fmt::format("{}: expected pairs, got something else", function));
    items.emplace_back(pair[0], pair[1]);
  }
  return items;
}

Value dict(const Arguments& arguments, Heap& heap) {
  std::vector<std::pair<Value, Value>> items;
  if (arguments.positional.size() > 1) fail("dict: expected at most one mapping, got more");
  if (!arguments.positional.empty()) items = pairs_of(arguments.positional.front(), "dict", heap);
  for (const auto& [name, value] : arguments.named) items.emplace_back(heap.text(name), value);
  return heap.dict(std::move(items));
}

Value name_space(const Arguments& arguments, Heap& heap) {
  const Value all = dict(arguments, heap);
  std::vector<std::pair<std::string, Value>> attributes;
  for (const auto& [key, value] : all.as_dict().items) {
    if (key.is_text()) attributes.emplace_back(key.as_text().bytes, value);
  }
  return heap.name_space(std::move(attributes));
}

Value cycler(const Arguments& arguments, Heap& heap) {
  if (arguments.positional.empty()) fail("cycler: expected items, got none");
  if (!arguments.named.empty()) fail("cycler: expected items, got one by name");
  auto at = std::make_shared<std::size_t>(0);
  const Value items = heap.tuple(arguments.positional);
  Function made{
      .name = "Cycler",
      .call = [](const Arguments&) -> Value {
        fail("cycler: expected a call of next or reset, got one of the cycler");
      },
      .attribute = [at, items, &heap](std::string_view name) -> Value {
        const auto& all = items.as_sequence().items;
        if (name == "current") return all[*at];
        if (name == "next") {
          return heap.function({.name = "cycler.next", .call = [at, items](const Arguments&) {
                                  const auto& held = items.as_sequence().items;
                                  const Value item = held[*at];
                                  *at = (*at + 1) % held.size();
                                  return item;
                                }});
        }
        if (name == "reset") {
          return heap.function({.name = "cycler.reset", .call = [at](const Arguments&) {
                                  *at = 0;
                                  return Value::none();
                                }});
        }
        return {};
      }};
  made.depth = depth_of(items);
  return heap.function(std::move(made));
}

Value joiner(const Arguments& arguments, Heap& heap) {
  const Parameters given("joiner", arguments, {"sep"});
  const Value separator = given.given(0) ? given[0] : heap.text(", ");
  auto used = std::make_shared<bool>(false);
  Function made{.name = "Joiner", .call = [used, separator, &heap](const Arguments& none) {
                  const Parameters nothing("joiner", none, {});
                  return std::exchange(*used, true) ? separator : heap.text("");
                }};
  made.depth = depth_of(separator) + 1;
  return heap.function(std::move(made));
}

Value raise_exception(const Arguments& arguments, Heap& heap) {
  const Parameters given("raise_exception", arguments, {"message"});
  throw Refusal{printed(given.required(0), heap)};
}

Value strftime_now(const Arguments& arguments, const std::function<std::tm()>& now, Heap& heap) {
  const Parameters given("strftime_now", arguments, {"format"});
  return heap.text(time_text(now(), given.text(0), heap));
}

}  // namespace

Value find_global(std::string_view name, const std::function<std::tm()>& now, Heap& heap) {
  using Global = Value (*)(const Arguments&, Heap&);
  constexpr std::pair<std::string_view, Global> kGlobals[] = {
      {"range", range},   {"dict", dict},     {"namespace", name_space},
      {"cycler", cycler}, {"joiner", joiner}, {"raise_exception", raise_exception},
  };
  for (const auto& global : kGlobals) {
    if (global.first != name) continue;
    return heap.function({.name = std::string(name),
                          .call = [function = global.second, &heap](const Arguments& arguments) {
                            return function(arguments, heap);
                          }});
  }
  if (name != "strftime_now") return {};
  return heap.function({.name = "strftime_now", .call = [now, &heap](const Arguments& arguments) {
                          return strftime_now(arguments, now, heap);
                        }});
}

}  // namespace outrider::jinja
