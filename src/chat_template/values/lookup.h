// SPDX-License-Identifier: Apache-2.0
// value.name and value[key] as in Jinja's sandbox: missing members are undefined, and members that
// would change a value are inaccessible.
#ifndef OUTRIDER_CHAT_TEMPLATE_VALUES_LOOKUP_H_
#define OUTRIDER_CHAT_TEMPLATE_VALUES_LOOKUP_H_

#include <string_view>

#include "chat_template/values/value.h"

namespace outrider::jinja {

// Methods and attributes first, then items. Throws Problem on undefined values, as do all functions
// here.
Value get_attribute(const Value& value, std::string_view name, Heap& heap);
// Items first, then methods and attributes.
Value get_item(const Value& value, const Value& key, Heap& heap);
// Methods and attributes alone; absent if there is none.
Value member_of(const Value& value, std::string_view name, Heap& heap);

}  // namespace outrider::jinja

#endif  // OUTRIDER_CHAT_TEMPLATE_VALUES_LOOKUP_H_
