// Looking for the best subset of a model's layers to leave out, a trial at a time.
//
// Source: the tree-structured Parzen estimator of Bergstra, Bardenet, Bengio and Kegl, "Algorithms
// for hyper-parameter optimization" (2011), section 4, over independent yes-or-no choices: the
// better quarter of the trials gives each layer a probability l of being left out, the others a
// probability g; of candidates drawn from l the one with the largest l / g is tried next.
#ifndef OUTRIDER_MEASURE_SKIP_SEARCH_H_
#define OUTRIDER_MEASURE_SKIP_SEARCH_H_

#include <cstdint>
#include <functional>
#include <vector>

namespace outrider {

// Calls `score` (more is better) for at most n_trials different subsets of the layers 0 to
// n_layers - 1, ascending, neither none nor all of them: every one there is if they are no more;
// else every single layer first. n_layers >= 2. A function of its arguments and the scores.
void search_subsets(int n_layers, int n_trials, std::uint64_t seed,
                    const std::function<double(const std::vector<int>&)>& score);

}  // namespace outrider

#endif  // OUTRIDER_MEASURE_SKIP_SEARCH_H_
