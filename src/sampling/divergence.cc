// SPDX-License-Identifier: Apache-2.0
#include "sampling/divergence.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

#include "base/elementary.h"
#include "sampling/row_kernels.h"

namespace outrider {
namespace {

// Sums weight * log(x) in order, taking logarithms in batches.
class LogSum {
 public:
  void add(double weight, double x) {
    weights_[n_] = weight;
    logs_[n_] = x;
    if (++n_ == kBlock) flush();
  }
  double total() {
    flush();
    return total_;
  }

 private:
  static constexpr std::size_t kBlock = 256;
  void flush() {
    logarithms(std::span(logs_).first(n_));
    for (std::size_t i = 0; i < n_; ++i) total_ += weights_[i] * logs_[i];
    n_ = 0;
  }
  std::array<double, kBlock> weights_;
  std::array<double, kBlock> logs_;
  std::size_t n_ = 0;
  double total_ = 0;
};

}  // namespace

double largest_prob(const Distribution& distribution) {
  return distribution.probs.empty()
             ? 0.0
             : *std::max_element(distribution.probs.begin(), distribution.probs.end());
}

std::span<double> largest_probs(const Distribution& distribution, std::span<double> room) {
  std::size_t n = 0;
  for (const double prob : distribution.probs) {
    if (n == room.size()) {
      if (n == 0 || prob <= room[n - 1]) continue;
      --n;
    }
    std::size_t at = n++;
    for (; at > 0 && room[at - 1] < prob; --at) room[at] = room[at - 1];
    room[at] = prob;
  }
  return room.first(n);
}

double entropy(const Distribution& distribution) {
  LogSum sum;
  for (const double prob : distribution.probs) {
    if (prob > 0) sum.add(prob, prob);
  }
  return std::max(0.0, -sum.total());
}

double total_variation(const Distribution& a, const Distribution& b) {
  double sum = 0;
  for_each_in_either(a, b,
                     [&](TokenId, double in_a, double in_b) { sum += std::abs(in_a - in_b); });
  return std::min(1.0, sum / 2);
}

double kl_divergence(const Distribution& a, const Distribution& b) {
  LogSum sum;
  bool finite = true;
  for_each_in_either(a, b, [&](TokenId, double in_a, double in_b) {
    if (in_a <= 0 || in_a == in_b) return;
    if (in_b > 0) {
      sum.add(in_a, in_a / in_b);
    } else {
      finite = false;
    }
  });
  return finite ? std::max(0.0, sum.total()) : std::numeric_limits<double>::infinity();
}

double jensen_shannon(const Distribution& a, const Distribution& b) {
  double sum = 0;
  for_each_in_either(a, b, [&](TokenId, double in_a, double in_b) {
    const double middle = (in_a + in_b) / 2;
    if (in_a > 0) sum += in_a * portable_log(in_a / middle) / 2;
    if (in_b > 0) sum += in_b * portable_log(in_b / middle) / 2;
  });
  return std::max(0.0, sum);
}

}  // namespace outrider
