// SPDX-License-Identifier: Apache-2.0
// Measures the target's passes for the plan of a tree or a chain.
#ifndef OUTRIDER_MEASURE_TUNING_PROFILE_PASSES_H_
#define OUTRIDER_MEASURE_TUNING_PROFILE_PASSES_H_

#include <vector>

#include "outrider/measure.h"
#include "outrider/model.h"
#include "outrider/tune.h"

namespace outrider {

// Medians over `rounds` rounds of passes over chains of these rows (ascending from 1), at the
// middle of the continuations.
std::vector<TreeProfile::Pass> profile_passes(const Model& model, const ContinuedTexts& texts,
                                              std::vector<int> rows, int rounds,
                                              MeasureProgress progress);

}  // namespace outrider

#endif  // OUTRIDER_MEASURE_TUNING_PROFILE_PASSES_H_
