// SPDX-License-Identifier: Apache-2.0
// Confidence intervals by resampling items.
#ifndef OUTRIDER_SAMPLING_BOOTSTRAP_H_
#define OUTRIDER_SAMPLING_BOOTSTRAP_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace outrider {

struct Interval {
  double low = 0;
  double high = 0;
};

struct BootstrapOptions {
  // The ends of a 95% interval are then the 25th values from either side. Runs with other seeds
  // move them by about a twentieth of the interval's width.
  int n_resamples = 1000;
  double confidence = 0.95;  // in (0, 1)
  std::uint64_t seed = 12345;
};

// Percentile intervals (Efron 1979; for corpus metrics Koehn 2004, "Statistical significance tests
// for machine translation evaluation"). counts: (n_items, n_counts), row by row. Each resample sums
// n_items rows drawn with replacement and calls `scores` for a vector of scores; the result has one
// interval for each. NaN scores are left out; if none is left, both ends are NaN. The same seed and
// counts give the same intervals on every machine, and resample r draws the same items for every
// metric. n_items >= 1.
std::vector<Interval> bootstrap_intervals(
    std::span<const double> counts, std::size_t n_counts,
    const std::function<std::vector<double>(std::span<const double>)>& scores,
    const BootstrapOptions& options = {});

// The middle value, or the mean of the two middle ones; NaN if there are none.
double median(std::vector<double> values);

// The interval of the median of `values`, from the same draws of items. At least one value.
Interval bootstrap_median(std::span<const double> values, const BootstrapOptions& options = {});

}  // namespace outrider

#endif  // OUTRIDER_SAMPLING_BOOTSTRAP_H_
