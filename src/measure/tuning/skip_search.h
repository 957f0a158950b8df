// SPDX-License-Identifier: Apache-2.0
// Searches the best subset of a model's layers to leave out, one trial at a time.
//
// Source: the tree-structured Parzen estimator of Bergstra, Bardenet, Bengio and Kegl, "Algorithms
// for hyper-parameter optimization" (2011), section 4, over independent yes-or-no choices. The
// better quarter of the trials gives each layer a probability l of being left out, the others a
// probability g. Of candidates drawn from l, the one with the largest l / g is tried next.
#ifndef OUTRIDER_MEASURE_TUNING_SKIP_SEARCH_H_
#define OUTRIDER_MEASURE_TUNING_SKIP_SEARCH_H_

#include <cstdint>
#include <functional>
#include <vector>

namespace outrider {

// Calls `score` (higher is better) for at most n_trials different subsets of the layers 0 to
// n_layers - 1, ascending, neither empty nor all. Tries every subset if there are no more than
// n_trials; otherwise every single layer first. n_layers >= 2. The calls are a function of the
// arguments and the scores.
void search_subsets(int n_layers, int n_trials, std::uint64_t seed,
                    const std::function<double(const std::vector<int>&)>& score);

}  // namespace outrider

#endif  // OUTRIDER_MEASURE_TUNING_SKIP_SEARCH_H_
