// SPDX-License-Identifier: Apache-2.0
#include "chat_template/functions/filters.h"

#include <fmt/format.h>

namespace outrider::jinja {

Filter find_filter(std::string_view name) {
  for (const auto find : {find_text_filter, find_sequence_filter, find_selection_filter,
                          find_order_filter, find_number_filter}) {
    if (const Filter found = find(name)) return found;
  }
  return nullptr;
}

Value apply_filter(std::string_view name, const Value& subject, const Arguments& arguments,
                   Heap& heap) {
  const Filter filter = find_filter(name);
  if (filter == nullptr) fail(fmt::format("expected a known filter, got '{}'", name));
  heap.count_steps(1);
  return filter(subject, arguments, heap);
}

}  // namespace outrider::jinja
