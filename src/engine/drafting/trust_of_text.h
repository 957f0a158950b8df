// SPDX-License-Identifier: Apache-2.0
// The deviation of one text's acceptance from that of all texts.
#ifndef OUTRIDER_ENGINE_DRAFTING_TRUST_OF_TEXT_H_
#define OUTRIDER_ENGINE_DRAFTING_TRUST_OF_TEXT_H_

#include <cmath>

#include "engine/drafting/draft_past.h"

namespace outrider {

// Corrects the curve of all texts for one text, by a shift of the log-odds that a token is
// accepted. It is logistic regression with an intercept alone and the curve as offset, by
// stochastic gradient ascent on the likelihood, token by token. So a text that repeats itself, or
// that the drafter predicts well, gets longer drafts.
class TrustOfText {
 public:
  // p: the curve's probability. Returns the corrected one.
  double shifted(double p) const {
    const double odds = p * factor_;
    return odds / (odds + (1 - p));
  }
  // Call it before the curve learns the same token. p: the curve's probability.
  void add(double p, bool stood) {
    log_odds_ += kStep * ((stood ? 1 : 0) - shifted(p));
    factor_ = std::exp(log_odds_);
  }
  void forget() { *this = {}; }

 private:
  // A step of this size has a memory of 1 / (kStep p (1 - p)), about twenty tokens. If the true
  // probability is constant, its noise is sqrt(kStep / 2), 0.35 of log-odds.
  static constexpr double kStep = 0.25;

  double log_odds_ = 0;
  double factor_ = 1;
};

}  // namespace outrider

#endif  // OUTRIDER_ENGINE_DRAFTING_TRUST_OF_TEXT_H_
