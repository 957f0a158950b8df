// SPDX-License-Identifier: Apache-2.0
// A model's estimate of its own expected loss at a position: the plug-in of deferral rules
// (Narasimhan et al. 2024, sections 3.2 and 4.3; for the log loss their appendix D).
#ifndef OUTRIDER_SPECULATE_RULES_EXPECTED_LOSS_H_
#define OUTRIDER_SPECULATE_RULES_EXPECTED_LOSS_H_

#include "sampling/divergence.h"

namespace outrider {

enum class Loss {
  zero_one,  // whether the likeliest token is wrong: 1 - max, from 0 to 1
  log,       // -log of the next token's probability: the entropy, from 0 to log(vocabulary)
};

inline double expected_loss(const Distribution& distribution, Loss loss) {
  return loss == Loss::zero_one ? 1 - largest_prob(distribution) : entropy(distribution);
}

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_RULES_EXPECTED_LOSS_H_
