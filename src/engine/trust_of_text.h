// How a text's drafts differ from those of all texts.
#ifndef OUTRIDER_ENGINE_TRUST_OF_TEXT_H_
#define OUTRIDER_ENGINE_TRUST_OF_TEXT_H_

#include <cmath>

#include "engine/draft_past.h"

namespace outrider {

// What a drafter's certainty is worth in one text: the curve of all texts, with the log-odds that a
// token stands shifted by an amount of the text's own. Logistic regression with an intercept alone,
// the curve as its offset, followed token by token up the gradient of the likelihood. A text that
// repeats itself, or that the drafter knows better than others, is drafted longer so.
class TrustOfText {
 public:
  // p: what the curve says. Certainties stay what they are.
  double shifted(double p) const {
    const double odds = p * factor_;
    return odds / (odds + (1 - p));
  }
  // Before the curve learns the same. p: what the curve said.
  void add(double p, bool stood) {
    log_odds_ += kStep * ((stood ? 1 : 0) - shifted(p));
    factor_ = std::exp(log_odds_);
  }
  void forget() { *this = {}; }

 private:
  // A step of this size forgets over 1 / (kStep p (1 - p)), some twenty tokens, and strays by
  // sqrt(kStep / 2), 0.35 of log-odds, where there is nothing to learn.
  static constexpr double kStep = 0.25;

  double log_odds_ = 0;
  double factor_ = 1;
};

}  // namespace outrider

#endif  // OUTRIDER_ENGINE_TRUST_OF_TEXT_H_
