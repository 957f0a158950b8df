// SPDX-License-Identifier: Apache-2.0
// Entropy of a distribution and divergences between two, in nats. Pure functions over supports,
// O(size), with the same bits on every machine; thread-safe.
#ifndef OUTRIDER_SAMPLING_DIVERGENCE_H_
#define OUTRIDER_SAMPLING_DIVERGENCE_H_

#include <span>

#include "sampling/distribution.h"

namespace outrider {

// The largest probability; 0 for an empty support.
double largest_prob(const Distribution& distribution);

// Writes the largest probabilities, descending, to the front of `room`; returns the part written,
// which is shorter if the support is. O(size * room) in the worst case, which is rare.
std::span<double> largest_probs(const Distribution& distribution, std::span<double> room);

double entropy(const Distribution& distribution);

// Half the sum of |a - b|, from 0 to 1.
double total_variation(const Distribution& a, const Distribution& b);

// sum of a log(a / b), at least 0; infinite if a has mass on a token on which b has none.
double kl_divergence(const Distribution& a, const Distribution& b);

// The mean of both divergences from the mean of the two: from 0 to log 2, never infinite.
double jensen_shannon(const Distribution& a, const Distribution& b);

}  // namespace outrider

#endif  // OUTRIDER_SAMPLING_DIVERGENCE_H_
