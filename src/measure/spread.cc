// SPDX-License-Identifier: Apache-2.0
#include "measure/spread.h"

#include <algorithm>

namespace outrider {

Spread spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  const double median =
      values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
  return {.median = median, .min = values.front(), .max = values.back()};
}

}  // namespace outrider
