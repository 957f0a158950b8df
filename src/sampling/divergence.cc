#include "sampling/divergence.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/elementary.h"

namespace outrider {

double largest_prob(const Distribution& distribution) {
  return distribution.probs.empty()
             ? 0.0
             : *std::max_element(distribution.probs.begin(), distribution.probs.end());
}

double entropy(const Distribution& distribution) {
  double sum = 0;
  for (const double prob : distribution.probs) {
    if (prob > 0) sum -= prob * portable_log(prob);
  }
  return std::max(0.0, sum);
}

double total_variation(const Distribution& a, const Distribution& b) {
  double sum = 0;
  for_each_in_either(a, b,
                     [&](TokenId, double in_a, double in_b) { sum += std::abs(in_a - in_b); });
  return std::min(1.0, sum / 2);
}

double kl_divergence(const Distribution& a, const Distribution& b) {
  double sum = 0;
  for_each_in_either(a, b, [&](TokenId, double in_a, double in_b) {
    if (in_a <= 0 || in_a == in_b) return;
    sum += in_b > 0 ? in_a * portable_log(in_a / in_b) : std::numeric_limits<double>::infinity();
  });
  return std::max(0.0, sum);
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
