// SPDX-License-Identifier: Apache-2.0
#include "chat_template/loop.h"

#include "chat_template/values/operations.h"

namespace outrider::jinja {
namespace {

Value peek(Loop& loop) {
  if (loop.n_ahead_taken == loop.ahead.size()) {
    const Value item = loop.next();
    if (item.is_absent()) return item;
    loop.ahead.push_back(item);
  }
  return loop.ahead[loop.n_ahead_taken];
}

Value cycle(const Loop& loop, const Arguments& arguments) {
  if (!arguments.named.empty()) fail("loop.cycle: expected values, got one by name");
  if (arguments.positional.empty()) fail("loop.cycle: expected values, got none");
  const auto n = static_cast<std::int64_t>(arguments.positional.size());
  return arguments.positional[static_cast<std::size_t>(loop.index0 % n)];
}

Value changed(Loop& loop, const Arguments& arguments, Heap& heap) {
  const Value given = heap.tuple(arguments.positional);
  const bool differs = loop.last_changed.is_absent() || !equal(loop.last_changed, given, heap);
  if (differs) loop.last_changed = given;
  return Value::boolean(differs);
}

}  // namespace

bool Loop::advance() {
  Value item;
  if (n_ahead_taken == ahead.size()) {
    ahead.clear();
    n_ahead_taken = 0;
    item = next();
  } else {
    item = ahead[n_ahead_taken++];
  }
  if (item.is_absent()) return false;
  ++index0;
  before = current;
  current = item;
  return true;
}

std::int64_t Loop::count() {
  if (length < 0) {
    for (Value item = next(); !item.is_absent(); item = next()) ahead.push_back(item);
    length = index0 + 1 + static_cast<std::int64_t>(ahead.size() - n_ahead_taken);
  }
  return length;
}

Value Loop::attribute(std::string_view name, const Value& self, Heap& heap) {
  if (name == "index") return Value::integer(index0 + 1);
  if (name == "index0") return Value::integer(index0);
  if (name == "first") return Value::boolean(index0 == 0);
  if (name == "last") return Value::boolean(peek(*this).is_absent());
  if (name == "length") return Value::integer(count());
  if (name == "revindex") return Value::integer(count() - index0);
  if (name == "revindex0") return Value::integer(count() - index0 - 1);
  if (name == "depth") return Value::integer(depth0 + 1);
  if (name == "depth0") return Value::integer(depth0);
  if (name == "previtem") return index0 == 0 ? heap.undefined("there is no previous item") : before;
  if (name == "nextitem") {
    const Value item = peek(*this);
    return item.is_absent() ? heap.undefined("there is no next item") : item;
  }
  if (name == "cycle") {
    return heap.function({.name = "loop.cycle", .call = [self](const Arguments& arguments) {
                            return cycle(self.as_loop(), arguments);
                          }});
  }
  if (name == "changed") {
    return heap.function({.name = "loop.changed", .call = [self, &heap](const Arguments& given) {
                            return changed(self.as_loop(), given, heap);
                          }});
  }
  return {};
}

}  // namespace outrider::jinja
