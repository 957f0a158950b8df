// SPDX-License-Identifier: Apache-2.0
// A named result of a run.
#ifndef OUTRIDER_TRAIN_OUTPUT_METRIC_H_
#define OUTRIDER_TRAIN_OUTPUT_METRIC_H_

#include <string>
#include <utility>

namespace outrider::train {

using Metric = std::pair<std::string, double>;

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_OUTPUT_METRIC_H_
