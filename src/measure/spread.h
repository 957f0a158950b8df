// SPDX-License-Identifier: Apache-2.0
// The spread of a measurement's rounds.
#ifndef OUTRIDER_MEASURE_SPREAD_H_
#define OUTRIDER_MEASURE_SPREAD_H_

#include <vector>

#include "outrider/measure.h"

namespace outrider {

// At least one value; for an even number the median is the mean of the middle two.
Spread spread_of(std::vector<double> values);

}  // namespace outrider

#endif  // OUTRIDER_MEASURE_SPREAD_H_
