// From a template's text to its syntax tree.
#ifndef OUTRIDER_CHAT_TEMPLATE_PARSER_H_
#define OUTRIDER_CHAT_TEMPLATE_PARSER_H_

#include <string_view>

#include "chat_template/syntax.h"

namespace outrider::jinja {

// Constants of the tree belong to `heap`. Throws Error naming the line where the text is no
// template, or uses what this engine does not know: a statement, a filter, a test.
Block parse_template(std::string_view text, Heap& heap);

}  // namespace outrider::jinja

#endif  // OUTRIDER_CHAT_TEMPLATE_PARSER_H_
