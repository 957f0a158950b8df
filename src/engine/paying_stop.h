// Where a draft ends: behind the token from which on the next one is not expected to pay.
#ifndef OUTRIDER_ENGINE_PAYING_STOP_H_
#define OUTRIDER_ENGINE_PAYING_STOP_H_

#include <array>
#include <span>
#include <vector>

#include "engine/draft_past.h"
#include "engine/trust_of_text.h"
#include "speculate/drafter.h"

namespace outrider {

// For chains. A draft goes on while (the probability that all of it stands, by what the drafter
// says of its tokens) * (that the next one stands, too) is above the price of a token: what
// drafting and judging one more takes, in tokens that would be gained in that time otherwise. The
// token that ends a draft stays in it and is judged, so that nothing is decided by the value of one
// that is not. Not thread-safe.
class PayingStop final : public StopRule {
 public:
  // inner: the request's own rule, which ends drafts as well; may be null, and outlives this one.
  explicit PayingStop(const StopRule* inner) : inner_(inner) {}

  // Before a draft. curve outlives it; prices: of a token behind 1, 2, .. drafted ones.
  using Prices = std::array<double, DraftPast::kDeepest>;
  void begin(const TrustCurve& curve, const TrustOfText& text, const Prices& prices);
  // Drafts go on to their ends.
  void begin_free();
  // The drafter's probabilities of the tokens since, in their order.
  std::span<const double> said() const { return said_; }

  bool stop_after(TokenId token, double raw_prob) const override;

 private:
  const StopRule* inner_;
  const TrustCurve* curve_ = nullptr;  // null: there is no price
  TrustOfText text_;
  double next_ = 1;  // that a token stands of which only is known that those before it do
  Prices prices_{};
  // Of the draft on its way. A rule is asked in the order of the draft's tokens.
  mutable double survival_ = 1;
  mutable std::vector<double> said_;
};

}  // namespace outrider

#endif  // OUTRIDER_ENGINE_PAYING_STOP_H_
