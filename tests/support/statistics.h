// SPDX-License-Identifier: Apache-2.0
// Tests of randomness, with their tail probabilities.
#ifndef OUTRIDER_TESTS_SUPPORT_STATISTICS_H_
#define OUTRIDER_TESTS_SUPPORT_STATISTICS_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

namespace outrider::test {

// Kolmogorov-Smirnov: the largest distance of the empirical distribution of `values` from the
// uniform one on (0, 1), times sqrt(n). It exceeds x with probability about 2 exp(-2 x^2). Sorts
// values.
inline double ks_uniform(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  double largest = 0;
  for (std::size_t index = 0; index < values.size(); ++index) {
    const auto rank = static_cast<double>(index);
    largest = std::max({largest, values[index] - rank / n, (rank + 1) / n - values[index]});
  }
  return largest * std::sqrt(n);
}
inline double ks_tail(double statistic) {
  return std::min(1.0, 2 * std::exp(-2 * statistic * statistic));
}

// The upper tail of the chi-square distribution: Q(degrees / 2, statistic / 2), the regularised
// incomplete gamma function. Computed by its series for small statistics and by its continued
// fraction for large ones.
inline double chi_square_tail(double statistic, double degrees) {
  const double a = degrees / 2;
  const double x = statistic / 2;
  if (x <= 0) return 1;
  const double scale = std::exp(-x + a * std::log(x) - std::lgamma(a));
  if (x < a + 1) {
    double term = 1 / a;
    double sum = term;
    for (double n = a + 1; std::abs(term) > 1e-16 * std::abs(sum); n += 1) sum += term *= x / n;
    return 1 - sum * scale;
  }
  double b = x + 1 - a;  // modified Lentz
  double c = 1e300;
  double d = 1 / b;
  double fraction = d;
  for (int i = 1; i < 10000; ++i) {
    const double an = -i * (i - a);
    b += 2;
    d = 1 / (an * d + b);
    c = b + an / c;
    fraction *= d * c;
    if (std::abs(d * c - 1) < 1e-15) break;
  }
  return scale * fraction;
}

struct ChiSquare {
  double statistic = 0;
  double degrees = 0;
  double tail = 1;
};

// Whether two samples of counts over the same outcomes come from one distribution. Outcomes whose
// expected count in the smaller sample is below 10 are merged into one bin.
inline ChiSquare chi_square_two_samples(std::span<const double> a, std::span<const double> b) {
  double n_a = 0;
  double n_b = 0;
  for (const double count : a) n_a += count;
  for (const double count : b) n_b += count;
  ChiSquare result;
  double rest_a = 0;
  double rest_b = 0;
  int n_bins = 0;
  const auto add_bin = [&](double in_a, double in_b) {
    const double share = (in_a + in_b) / (n_a + n_b);
    result.statistic += std::pow(in_a - n_a * share, 2) / (n_a * share) +
                        std::pow(in_b - n_b * share, 2) / (n_b * share);
    ++n_bins;
  };
  for (std::size_t index = 0; index < a.size(); ++index) {
    const double expected = (a[index] + b[index]) / (n_a + n_b) * std::min(n_a, n_b);
    if (expected >= 10) {
      add_bin(a[index], b[index]);
    } else {
      rest_a += a[index];
      rest_b += b[index];
    }
  }
  if (rest_a + rest_b > 0) add_bin(rest_a, rest_b);
  result.degrees = n_bins - 1;
  result.tail = chi_square_tail(result.statistic, result.degrees);
  return result;
}

// Whether counts of outcomes come from a distribution. Outcomes that are not listed, and listed
// ones whose expected count is below 10, are merged into one bin.
inline ChiSquare chi_square_one_sample(std::span<const double> counts,
                                       std::span<const double> probs) {
  double n = 0;
  for (const double count : counts) n += count;
  ChiSquare result;
  double rest_count = n;
  double rest_prob = 1;
  int n_bins = 0;
  const auto add_bin = [&](double count, double prob) {
    result.statistic += std::pow(count - n * prob, 2) / (n * prob);
    ++n_bins;
  };
  for (std::size_t index = 0; index < counts.size(); ++index) {
    if (n * probs[index] < 10) continue;
    add_bin(counts[index], probs[index]);
    rest_count -= counts[index];
    rest_prob -= probs[index];
  }
  // A remainder too small for a separate bin is left out, unless its count is larger than the
  // distribution allows.
  if (n * rest_prob >= 10 || rest_count > 100) add_bin(rest_count, std::max(rest_prob, 1e-12));
  result.degrees = n_bins - 1;
  result.tail = chi_square_tail(result.statistic, result.degrees);
  return result;
}

// Correlation of two columns times sqrt(n): standard normal if they are independent.
class Correlation {
 public:
  void add(double x, double y) {
    n_ += 1;
    sum_x_ += x;
    sum_y_ += y;
    sum_xx_ += x * x;
    sum_yy_ += y * y;
    sum_xy_ += x * y;
  }
  double z() const {
    const double covariance = sum_xy_ / n_ - (sum_x_ / n_) * (sum_y_ / n_);
    const double variance_x = sum_xx_ / n_ - std::pow(sum_x_ / n_, 2);
    const double variance_y = sum_yy_ / n_ - std::pow(sum_y_ / n_, 2);
    return covariance / std::sqrt(variance_x * variance_y) * std::sqrt(n_);
  }

 private:
  double n_ = 0, sum_x_ = 0, sum_y_ = 0, sum_xx_ = 0, sum_yy_ = 0, sum_xy_ = 0;
};

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_STATISTICS_H_
