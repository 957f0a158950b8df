// SPDX-License-Identifier: Apache-2.0
// The argument `attribute` of filters: "name", "name.0.other", or a number. Throws Problem if an
// item on the path is undefined.
#ifndef OUTRIDER_CHAT_TEMPLATE_VALUES_ATTRIBUTE_PATH_H_
#define OUTRIDER_CHAT_TEMPLATE_VALUES_ATTRIBUTE_PATH_H_

#include <charconv>
#include <string_view>
#include <vector>

#include "chat_template/values/characters.h"
#include "chat_template/values/lookup.h"
#include "chat_template/values/text_search.h"
#include "chat_template/values/value.h"

namespace outrider::jinja {

class AttributePath {
 public:
  // Absent and none mean the item itself.
  AttributePath(const Value& path, Heap& heap) : heap_(&heap) {
    if (path.is_absent() || path.is_none()) return;
    if (!path.is_text()) {
      parts_.push_back(path);
      return;
    }
    for (const std::string_view part : split_at(path.as_text().bytes, ".", -1, false)) {
      std::int64_t number = 0;
      const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
      const bool is_number =
          error == std::errc() && end == part.data() + part.size() && !part.starts_with('-');
      parts_.push_back(is_number ? Value::integer(number) : heap.text(std::string(part)));
    }
  }

  // `otherwise` (if not absent or none) replaces undefined values.
  Value of(Value item, const Value& otherwise = {}) const {
    for (const Value& part : parts_) {
      heap_->count_steps(1);
      item = get_item(item, part, *heap_);
      if (item.is_undefined() && !otherwise.is_absent() && !otherwise.is_none()) item = otherwise;
    }
    return item;
  }

 private:
  Heap* heap_;
  std::vector<Value> parts_;
};

// The key for sorting and comparing without regard to case.
inline Value without_case(const Value& value, Heap& heap) {
  return value.is_text() ? heap.text(to_lower(value.as_text().bytes)) : value;
}

}  // namespace outrider::jinja

#endif  // OUTRIDER_CHAT_TEMPLATE_VALUES_ATTRIBUTE_PATH_H_
