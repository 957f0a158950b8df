// What a node of a draft has to be worth to pay, and what drafters' certainty turned out to be.
#ifndef OUTRIDER_ENGINE_PAYING_NODES_H_
#define OUTRIDER_ENGINE_PAYING_NODES_H_

#include <vector>

#include "engine/draft_past.h"
#include "engine/paying_stop.h"
#include "speculate/acceptance.h"
#include "speculate/draft_tree.h"
#include "speculate/draft_worth.h"

namespace outrider {

// Of one text's draft in one round. The price of a node is what judging one more row takes, in
// tokens that would be gained in that time otherwise. Not thread-safe.
class PayingNodes final : public DraftWorth {
 public:
  // Before a draft. curve outlives it; prices: of a node behind 0, 1, .. others.
  void begin(const TrustCurve& curve, const PayingStop::Prices& prices);
  // After the verdict: what was drafted and left out teaches the curve.
  void learn(const DraftTree& tree, const Verdict& verdict, TrustCurve& curve) const;
  // The same where the draft was withdrawn; first: the token that the text went on with.
  void learn_aside(TokenId first, TrustCurve& curve) const;

  double stands(double certainty) const override { return curve_->stands(certainty); }
  double price(int n) const override;
  void drafted(double certainty) override { drafted_.push_back(certainty); }
  void refused(int parent, TokenId token, double certainty) override;
  double gain(const DraftTree& tree) const override;
  void withdraw(const DraftTree& tree) override;

 private:
  struct Refused {
    int parent = 0;
    TokenId token = kNoToken;
    double certainty = 0;
  };
  const TrustCurve* curve_ = nullptr;
  PayingStop::Prices prices_{};
  std::vector<double> drafted_;
  std::vector<Refused> refused_;
  mutable std::vector<double> survival_;  // of nodes, kept from call to call
};

}  // namespace outrider

#endif  // OUTRIDER_ENGINE_PAYING_NODES_H_
