// Numbers in a given form, and texts padded to a width: what % and format() have in common.
#ifndef OUTRIDER_CHAT_TEMPLATE_NUMBER_FORMAT_H_
#define OUTRIDER_CHAT_TEMPLATE_NUMBER_FORMAT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "chat_template/value.h"

namespace outrider::jinja {

struct NumberForm {
  std::string fill = " ";
  char align = '\0';  // '<', '>', '^', '=' (behind the sign), or the default of the type
  char sign = '-';    // '-': minus alone, '+': always, ' ': a blank for plus
  bool alternate = false;
  std::int64_t width = 0;
  char grouping = '\0';  // ',' or '_'
  std::int64_t precision = -1;
  char type = '\0';
};

// Widths and precisions that no prompt has.
inline constexpr std::int64_t kWidest = 10'000;

std::string format_integer(std::int64_t value, const NumberForm& form);
std::string format_real(double value, const NumberForm& form);
std::string padded(std::string_view text, const NumberForm& form, char default_align);

}  // namespace outrider::jinja

#endif  // OUTRIDER_CHAT_TEMPLATE_NUMBER_FORMAT_H_
