// SPDX-License-Identifier: Apache-2.0
#include "sampling/bootstrap.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sampling/counter_chance.h"

namespace outrider {
namespace {

// The quantile `share` of sorted values, interpolated linearly between neighbours.
double quantile(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double between = place - static_cast<double>(below);
  // Infinities (a rule that cannot emit the text) cannot be interpolated.
  if (between == 0 || sorted[below] == sorted[above]) return sorted[below];
  return sorted[below] + between * (sorted[above] - sorted[below]);
}

Interval interval_of(std::vector<double>& values, double confidence) {
  values.erase(std::remove_if(values.begin(), values.end(), [](double v) { return std::isnan(v); }),
               values.end());
  if (values.empty()) {
    constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
    return {.low = kNothing, .high = kNothing};
  }
  std::sort(values.begin(), values.end());
  const double tail = (1 - confidence) / 2;
  return {.low = quantile(values, tail), .high = quantile(values, 1 - tail)};
}

// The item that one draw of a resample takes.
std::size_t drawn_item(std::size_t draw, int resample, std::size_t n_items, std::uint64_t seed) {
  const auto block =
      philox4x32({static_cast<std::uint32_t>(draw), static_cast<std::uint32_t>(resample), 0, 0},
                 {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
  // The upper half of 32 bits times n_items: each item's probability is off by less than 2^-32.
  return static_cast<std::size_t>((block[0] * std::uint64_t{n_items}) >> 32);
}

}  // namespace

std::vector<Interval> bootstrap_intervals(
    std::span<const double> counts, std::size_t n_counts,
    const std::function<std::vector<double>(std::span<const double>)>& scores,
    const BootstrapOptions& options) {
  const std::size_t n_items = counts.size() / n_counts;
  std::vector<std::vector<double>> drawn;  // [score][resample]
  std::vector<double> sums(n_counts);
  for (int resample = 0; resample < options.n_resamples; ++resample) {
    std::fill(sums.begin(), sums.end(), 0.0);
    for (std::size_t draw = 0; draw < n_items; ++draw) {
      const std::size_t item = drawn_item(draw, resample, n_items, options.seed);
      for (std::size_t c = 0; c < n_counts; ++c) sums[c] += counts[item * n_counts + c];
    }
    const std::vector<double> values = scores(sums);
    drawn.resize(values.size());
    for (std::size_t s = 0; s < values.size(); ++s) drawn[s].push_back(values[s]);
  }
  std::vector<Interval> intervals;
  intervals.reserve(drawn.size());
  for (std::vector<double>& values : drawn) {
    intervals.push_back(interval_of(values, options.confidence));
  }
  return intervals;
}

double median(std::vector<double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

Interval bootstrap_median(std::span<const double> values, const BootstrapOptions& options) {
  std::vector<double> medians;
  std::vector<double> sample(values.size());
  for (int resample = 0; resample < options.n_resamples; ++resample) {
    for (std::size_t draw = 0; draw < values.size(); ++draw) {
      sample[draw] = values[drawn_item(draw, resample, values.size(), options.seed)];
    }
    medians.push_back(median(sample));
  }
  return interval_of(medians, options.confidence);
}

}  // namespace outrider
