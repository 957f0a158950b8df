// SPDX-License-Identifier: Apache-2.0
// Blanks around words. Pure functions.
#ifndef OUTRIDER_BASE_BLANKS_H_
#define OUTRIDER_BASE_BLANKS_H_

#include <string_view>

namespace outrider {

inline constexpr std::string_view kBlanks = " \t\r\n";  // JSON's, and those of lines of text
inline bool is_blank(char byte) { return kBlanks.find(byte) != std::string_view::npos; }

// The text without blanks at its ends.
inline std::string_view without_blanks(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

}  // namespace outrider

#endif  // OUTRIDER_BASE_BLANKS_H_
