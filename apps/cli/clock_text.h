// SPDX-License-Identifier: Apache-2.0
// A duration as a clock shows it.
#ifndef OUTRIDER_APPS_CLI_CLOCK_TEXT_H_
#define OUTRIDER_APPS_CLI_CLOCK_TEXT_H_

#include <string>

namespace outrider::cli {

// 3723 -> "1:02:03", 62 -> "1:02"
std::string clock_of(double seconds);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_CLI_CLOCK_TEXT_H_
