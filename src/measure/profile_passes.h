// What the target's passes cost a tree's or a chain's plan.
#ifndef OUTRIDER_MEASURE_PROFILE_PASSES_H_
#define OUTRIDER_MEASURE_PROFILE_PASSES_H_

#include <vector>

#include "outrider/measure.h"
#include "outrider/model.h"
#include "outrider/tune.h"

namespace outrider {

// Medians over so many rounds of passes over chains of so many rows (ascending from 1), in the
// middle of the continuations.
std::vector<TreeProfile::Pass> profile_passes(const Model& model, const ContinuedTexts& texts,
                                              std::vector<int> rows, int rounds,
                                              MeasureProgress progress);

}  // namespace outrider

#endif  // OUTRIDER_MEASURE_PROFILE_PASSES_H_
