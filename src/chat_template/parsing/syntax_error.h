// SPDX-License-Identifier: Apache-2.0
// The error for an invalid template.
#ifndef OUTRIDER_CHAT_TEMPLATE_PARSING_SYNTAX_ERROR_H_
#define OUTRIDER_CHAT_TEMPLATE_PARSING_SYNTAX_ERROR_H_

#include <fmt/format.h>

#include <string_view>

#include "outrider/error.h"

namespace outrider::jinja {

// `problem`: "expected X, got Y".
[[noreturn]] inline void syntax_error(int line, std::string_view problem) {
  throw Error("read chat template", fmt::format("line {}", line), problem);
}

}  // namespace outrider::jinja

#endif  // OUTRIDER_CHAT_TEMPLATE_PARSING_SYNTAX_ERROR_H_
