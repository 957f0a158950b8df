// SPDX-License-Identifier: Apache-2.0
#include "sampling/distribution.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "base/lane_sum.h"

namespace outrider {
namespace {

bool same_range(const Distribution& a, const Distribution& b) {
  return a.ids.size() == b.ids.size() && a.covers_range() && b.covers_range();
}

// left[i] = what remains of weight * from[i] after subtracting taken's probability.
void find_remainders(const Distribution& from, const Distribution& taken, double weight,
                     std::vector<double>& left) {
  const std::size_t n = from.ids.size();
  left.reserve(from.probs.capacity());  // supports vary: reserves the distribution's own capacity
  left.resize(n);
  const double* const probs = from.probs.data();
  const double* const shares = taken.probs.data();
  double* const out = left.data();
  if (same_range(from, taken)) {
    for (std::size_t i = 0; i < n; ++i) out[i] = weight * probs[i] - shares[i];
  } else {
    // Writes without branches and clips at 0 afterwards. For two large supports, the processor
    // could not predict which token comes next or which probability is larger.
    const std::size_t n_taken = taken.ids.size();
    std::size_t i = 0;
    std::size_t j = 0;
    while (i < n && j < n_taken) {
      const TokenId id = from.ids[i];
      const TokenId other = taken.ids[j];
      out[i] = weight * probs[i] - shares[j] * (id == other ? 1.0 : 0.0);
      i += id <= other ? 1 : 0;
      j += other <= id ? 1 : 0;
    }
    for (; i < n; ++i) out[i] = weight * probs[i];
  }
  for (std::size_t i = 0; i < n; ++i) out[i] = out[i] > 0 ? out[i] : 0.0;
}

// One buffer per thread, as large as the largest distribution so far.
std::vector<double>& remainders_of_thread() {
  thread_local std::vector<double> remainders;
  return remainders;
}

// Sums in the same order as over a whole vocabulary.
double sum_by_id(const Distribution& dist, std::span<const double> values) {
  LaneSum sum;
  if (dist.covers_range()) {
    sum.add_each(values.size(), [=](std::size_t i) { return values[i]; });
  } else {
    for (std::size_t i = 0; i < values.size(); ++i) {
      sum.add(static_cast<std::size_t>(dist.ids[i]), values[i]);
    }
  }
  return sum.total();
}

}  // namespace

Distribution Distribution::dense(std::span<const double> probs) {
  Distribution result;
  result.ids.resize(probs.size());
  std::iota(result.ids.begin(), result.ids.end(), TokenId{0});
  result.probs.assign(probs.begin(), probs.end());
  return result;
}

double Distribution::searched_prob(TokenId id) const {
  const auto found = std::lower_bound(ids.begin(), ids.end(), id);
  return found != ids.end() && *found == id ? probs[static_cast<std::size_t>(found - ids.begin())]
                                            : 0.0;
}

void Distribution::reserve(std::size_t n) {
  ids.reserve(n);
  probs.reserve(n);
}

void Distribution::assign(const Distribution& other) {
  reserve(std::max(other.ids.capacity(), other.probs.capacity()));
  ids = other.ids;
  probs = other.probs;
}

TokenId Distribution::argmax() const {
  // max_element gives the first of equals, and ids ascend.
  return ids[static_cast<std::size_t>(std::max_element(probs.begin(), probs.end()) -
                                      probs.begin())];
}

double overlap(const Distribution& a, const Distribution& b) {
  double sum = 0;
  for_each_in_either(a, b, [&](TokenId, double in_a, double in_b) { sum += std::min(in_a, in_b); });
  return sum;
}

double remainder_mass(const Distribution& from, const Distribution& taken, double weight) {
  std::vector<double>& left = remainders_of_thread();
  find_remainders(from, taken, weight, left);
  return sum_by_id(from, left);
}

double subtract_and_normalise(Distribution& from, const Distribution& taken, double weight) {
  std::vector<double>& left = remainders_of_thread();
  find_remainders(from, taken, weight, left);
  const double mass = sum_by_id(from, left);
  if (!(mass > 0)) return 0;  // leaves `from` unchanged
  const std::span<double> probs = left;
  for (double& prob : probs) prob /= mass;
  std::size_t n_kept = 0;
  // Compacts in place: writes never overtake reads.
  TokenId* const ids = from.ids.data();
  double* const kept = from.probs.data();
  for (std::size_t i = 0; i < probs.size(); ++i) {
    ids[n_kept] = ids[i];
    kept[n_kept] = probs[i];
    n_kept += probs[i] > 0 ? 1 : 0;
  }
  from.ids.resize(n_kept);
  from.probs.resize(n_kept);
  return mass;
}

}  // namespace outrider
