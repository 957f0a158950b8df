// SPDX-License-Identifier: Apache-2.0
// A stop rule that ends a draft where the next token is not expected to pay.
#ifndef OUTRIDER_ENGINE_DRAFTING_PAYING_STOP_H_
#define OUTRIDER_ENGINE_DRAFTING_PAYING_STOP_H_

#include <array>
#include <span>
#include <vector>

#include "engine/drafting/draft_past.h"
#include "engine/drafting/trust_of_text.h"
#include "speculate/drafter.h"

namespace outrider {

// For chains. Let s be the probability that all of the draft is accepted, by the drafter's
// probabilities, and q that the next token is. A draft continues while s * q is above the price of
// a token: the time of drafting and verifying one more, in tokens that would be gained in that time
// otherwise. The token that ends a draft stays in it and is verified, so no decision depends on the
// value of an unverified token. Not thread-safe.
class PayingStop final : public StopRule {
 public:
  // inner: the request's own rule, which also ends drafts; may be null, and must outlive this one.
  explicit PayingStop(const StopRule* inner) : inner_(inner) {}

  // Called before a draft. curve must outlive it; prices: of a token after 1, 2, .. drafted ones.
  using Prices = std::array<double, DraftPast::kDeepest>;
  void begin(const TrustCurve& curve, const TrustOfText& text, const Prices& prices);
  // The same for drafts that are never ended for their price.
  void begin_free();
  // The drafter's probabilities of the tokens since then, in order.
  std::span<const double> raw_probs() const { return raw_probs_; }

  bool stop_after(TokenId token, double raw_prob) const override;

 private:
  const StopRule* inner_;
  const TrustCurve* curve_ = nullptr;  // null: there is no price
  TrustOfText text_;
  double next_ = 1;  // acceptance rate of a token with unknown probability, given that those before
                     // it are accepted
  Prices prices_{};
  // State of the current draft. A rule is asked in the order of the draft's tokens.
  mutable double survival_ = 1;
  mutable std::vector<double> raw_probs_;
};

}  // namespace outrider

#endif  // OUTRIDER_ENGINE_DRAFTING_PAYING_STOP_H_
