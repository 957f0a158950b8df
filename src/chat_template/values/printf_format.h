// SPDX-License-Identifier: Apache-2.0
// text % values: Python's printf-style formatting.
#ifndef OUTRIDER_CHAT_TEMPLATE_VALUES_PRINTF_FORMAT_H_
#define OUTRIDER_CHAT_TEMPLATE_VALUES_PRINTF_FORMAT_H_

#include "chat_template/values/value.h"

namespace outrider::jinja {

// `values` is one value, a tuple of them, or a dict for "%(name)s". Throws Problem if they do not
// fit the conversions. Not supported: * as a width, and %c.
Value printf_format(const Value& format, const Value& values, Heap& heap);

}  // namespace outrider::jinja

#endif  // OUTRIDER_CHAT_TEMPLATE_VALUES_PRINTF_FORMAT_H_
