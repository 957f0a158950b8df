// What one more level of a draft takes, where the first one takes more than others.
#ifndef OUTRIDER_ENGINE_FURTHER_LEVEL_H_
#define OUTRIDER_ENGINE_FURTHER_LEVEL_H_

#include <algorithm>

namespace outrider {

// The slope of a draft's time over its levels, in mean levels. The first level runs what was
// committed since the last draft, and what it takes to begin: with the family in models/ a draft of
// eight levels takes 0.036 ms for each, one of a single level 0.063.
class FurtherLevel {
 public:
  // n_mean: the draft's time, in mean levels.
  void add(double n_levels, double n_mean) {
    // A machine that stood still meanwhile says nothing.
    if (n_mean > kStalled * n_levels) return;
    n_ = n_ * kKeeps + 1;
    const double rate = 1 / n_;
    const double from_levels = n_levels - levels_;
    levels_ += rate * from_levels;
    variance_ += rate * (from_levels * (n_levels - levels_) - variance_);
    covariance_ += rate * (from_levels * (n_mean - mean_) * (1 - rate) - covariance_);
    mean_ += rate * (n_mean - mean_);
  }
  // 1 where drafts were all as deep.
  double in_mean_levels() const {
    return std::clamp((covariance_ + kGuess) / (variance_ + kGuess), kLeast, 1.0);
  }

 private:
  static constexpr double kKeeps = 0.98;  // some fifty drafts
  static constexpr double kStalled = 3;
  // What is not known is taken to be a mean level: as if drafts had had a variance of 0.1 more.
  static constexpr double kGuess = 0.1;
  static constexpr double kLeast = 0.25;  // less has not been seen

  double n_ = 0;
  double levels_ = 0;
  double mean_ = 0;
  double variance_ = 0;
  double covariance_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_ENGINE_FURTHER_LEVEL_H_
