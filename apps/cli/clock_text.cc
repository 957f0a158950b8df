// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/clock_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace outrider::cli {

std::string clock_of(double seconds) {
  const long long whole = std::llround(std::max(0.0, seconds));
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

}  // namespace outrider::cli
