// SPDX-License-Identifier: Apache-2.0
// HTML's five characters as entities: the filters escape, e and forceescape. Pure, thread-safe.
#ifndef OUTRIDER_CHAT_TEMPLATE_FUNCTIONS_MARKUP_H_
#define OUTRIDER_CHAT_TEMPLATE_FUNCTIONS_MARKUP_H_

#include <string>
#include <string_view>

namespace outrider::jinja {

inline std::string escape_markup(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '"':
        out += "&#34;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace outrider::jinja

#endif  // OUTRIDER_CHAT_TEMPLATE_FUNCTIONS_MARKUP_H_
