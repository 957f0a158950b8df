// SPDX-License-Identifier: Apache-2.0
// Shared by the proofs by enumeration: bounds, transforms, and a stop rule that reads values.
#ifndef OUTRIDER_TESTS_SUPPORT_PROOFS_EXACTNESS_H_
#define OUTRIDER_TESTS_SUPPORT_PROOFS_EXACTNESS_H_

#include <string>
#include <utility>
#include <vector>

#include "outrider/sampling.h"
#include "sampling/distribution.h"
#include "speculate/drafter.h"

namespace outrider::test {

// Bound for sums of at most a few 10^5 products of doubles with errors near 1e-16 each.
inline constexpr double kExact = 1e-12;
// A wrong step changes the probability of some outcome by at least this much.
inline constexpr double kCaught = 1e-3;

// Ends a path by the drafted token's value: its probability and its id.
class ValueStop final : public StopRule {
 public:
  bool stop_after(TokenId token, double raw_prob) const override {
    return raw_prob < 0.4 || token == 1;
  }
};

inline std::vector<std::pair<std::string, SamplingParams>> transforms() {
  return {{"temperature 1", {.temperature = 1}},
          {"temperature 0.7, top-k 2", {.temperature = 0.7, .top_k = 2}},
          {"top-p 0.8", {.temperature = 1.3, .top_p = 0.8}},
          {"min-p 0.3", {.temperature = 1, .min_p = 0.3}},
          {"penalties",
           {.temperature = 0.9,
            .repetition_penalty = 1.5,
            .presence_penalty = 0.4,
            .frequency_penalty = 0.3,
            .logit_bias = {{1, 0.5F}}}},
          {"greedy", {.temperature = 0}}};
}

// For mutants: from <- max(0, weight * from - taken) without normalising. Returns the sum of
// `from`.
inline double subtract_without_normalising(Distribution& from, const Distribution& taken,
                                           double weight = 1) {
  const double mass = subtract_and_normalise(from, taken, weight);
  if (mass > 0) {
    for (double& prob : from.probs) prob *= mass;
  }
  return mass;
}

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_PROOFS_EXACTNESS_H_
