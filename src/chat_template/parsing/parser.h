// SPDX-License-Identifier: Apache-2.0
// Parses a template's text into its syntax tree.
#ifndef OUTRIDER_CHAT_TEMPLATE_PARSING_PARSER_H_
#define OUTRIDER_CHAT_TEMPLATE_PARSING_PARSER_H_

#include <string_view>

#include "chat_template/parsing/syntax.h"

namespace outrider::jinja {

// `heap` owns the constants of the tree. Throws Error with the line if the text is not a template,
// or uses an unsupported statement, filter or test.
Block parse_template(std::string_view text, Heap& heap);

}  // namespace outrider::jinja

#endif  // OUTRIDER_CHAT_TEMPLATE_PARSING_PARSER_H_
