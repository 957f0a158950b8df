// SPDX-License-Identifier: Apache-2.0
// The cost of one more level of a draft, relative to the mean level.
#ifndef OUTRIDER_ENGINE_DRAFTING_FURTHER_LEVEL_H_
#define OUTRIDER_ENGINE_DRAFTING_FURTHER_LEVEL_H_

#include <algorithm>

namespace outrider {

// The slope of a draft's time over its levels, in mean levels. The first level costs more: it runs
// what was committed since the last draft, and the start of the draft. With the models in models/,
// a draft of eight levels takes 0.036 ms a level, one of a single level 0.063.
class FurtherLevel {
 public:
  // n_mean: the draft's time, in mean levels.
  void add(double n_levels, double n_mean) {
    // Ignores drafts during which the machine stalled.
    if (n_mean > kStalled * n_levels) return;
    n_ = n_ * kKeeps + 1;
    const double rate = 1 / n_;
    const double from_levels = n_levels - levels_;
    levels_ += rate * from_levels;
    variance_ += rate * (from_levels * (n_levels - levels_) - variance_);
    covariance_ += rate * (from_levels * (n_mean - mean_) * (1 - rate) - covariance_);
    mean_ += rate * (n_mean - mean_);
  }
  // 1 if all drafts were equally deep.
  double in_mean_levels() const {
    return std::clamp((covariance_ + kGuess) / (variance_ + kGuess), kMin, 1.0);
  }

 private:
  static constexpr double kKeeps = 0.98;  // about fifty drafts
  static constexpr double kStalled = 3;
  // The prior is a mean level, with the weight of an additional variance of 0.1.
  static constexpr double kGuess = 0.1;
  static constexpr double kMin = 0.25;  // lower values have not been measured

  double n_ = 0;
  double levels_ = 0;
  double mean_ = 0;
  double variance_ = 0;
  double covariance_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_ENGINE_DRAFTING_FURTHER_LEVEL_H_
