// SPDX-License-Identifier: Apache-2.0
// The variable `loop` of a running for loop. Not thread-safe.
#ifndef OUTRIDER_CHAT_TEMPLATE_LOOP_H_
#define OUTRIDER_CHAT_TEMPLATE_LOOP_H_

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "chat_template/values/value.h"

namespace outrider::jinja {

struct Loop {
  // The items still to come. They are read one ahead if the template asks for the next item, and
  // all if it asks for the number of an iterator's items.
  std::function<Value()> next;
  std::vector<Value> ahead;
  std::size_t n_ahead_taken = 0;
  std::int64_t length = -1;  // -1: unknown before the end
  std::int64_t index0 = -1;
  std::int64_t depth0 = 0;
  Value current;
  Value before;
  Value last_changed;
  // Runs the body over other items (recursive loops), else empty.
  std::function<Value(const Value& items)> recurse;

  // Makes the next item the current one; false at the end.
  bool advance();
  // An absent value if there is no such attribute.
  Value attribute(std::string_view name, const Value& self, Heap& heap);
  std::int64_t count();
};

}  // namespace outrider::jinja

#endif  // OUTRIDER_CHAT_TEMPLATE_LOOP_H_
