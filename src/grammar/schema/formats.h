// SPDX-License-Identifier: Apache-2.0
// The values of JSON Schema's `format`, as regular expressions.
#ifndef OUTRIDER_GRAMMAR_SCHEMA_FORMATS_H_
#define OUTRIDER_GRAMMAR_SCHEMA_FORMATS_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace outrider {

// The expression of a format; empty for an unknown one.
std::optional<std::string> expression_of_format(std::string_view format);
std::vector<std::string_view> known_formats();

}  // namespace outrider

#endif  // OUTRIDER_GRAMMAR_SCHEMA_FORMATS_H_
