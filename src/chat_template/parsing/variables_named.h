// SPDX-License-Identifier: Apache-2.0
// Finds the variables that a body uses. Pure functions, thread-safe.
#ifndef OUTRIDER_CHAT_TEMPLATE_PARSING_VARIABLES_NAMED_H_
#define OUTRIDER_CHAT_TEMPLATE_PARSING_VARIABLES_NAMED_H_

#include <string_view>

#include "chat_template/parsing/syntax.h"

namespace outrider::jinja {

// Whether an expression anywhere in the block reads a variable of that name.
bool names_variable(const Block& block, std::string_view name);

}  // namespace outrider::jinja

#endif  // OUTRIDER_CHAT_TEMPLATE_PARSING_VARIABLES_NAMED_H_
