// SPDX-License-Identifier: Apache-2.0
// Formats numbers and pads texts to a width: shared by % and format().
#ifndef OUTRIDER_CHAT_TEMPLATE_VALUES_NUMBER_FORMAT_H_
#define OUTRIDER_CHAT_TEMPLATE_VALUES_NUMBER_FORMAT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "chat_template/values/value.h"

namespace outrider::jinja {

struct NumberForm {
  std::string fill = " ";
  char align = '\0';  // '<', '>', '^', '=' (after the sign), or the type's default
  char sign = '-';    // '-': minus only, '+': always, ' ': a blank for plus
  bool alternate = false;
  std::int64_t width = 0;
  char grouping = '\0';  // ',' or '_'
  std::int64_t precision = -1;
  char type = '\0';
};

// Limit of widths and precisions, above any prompt's.
inline constexpr std::int64_t kWidest = 10'000;

std::string format_integer(std::int64_t value, const NumberForm& form);
std::string format_real(double value, const NumberForm& form);
std::string padded(std::string_view text, const NumberForm& form, char default_align);

}  // namespace outrider::jinja

#endif  // OUTRIDER_CHAT_TEMPLATE_VALUES_NUMBER_FORMAT_H_
