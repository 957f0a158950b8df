// SPDX-License-Identifier: Apache-2.0
// The price at which a node of a draft pays, and the learning of drafters' certainties.
#ifndef OUTRIDER_ENGINE_DRAFTING_PAYING_NODES_H_
#define OUTRIDER_ENGINE_DRAFTING_PAYING_NODES_H_

#include <vector>

#include "engine/drafting/draft_past.h"
#include "engine/drafting/paying_stop.h"
#include "speculate/acceptances/acceptance.h"
#include "speculate/draft_tree.h"
#include "speculate/draft_worth.h"

namespace outrider {

// For one text's draft in one round. The price of a node is the time of verifying one more row, in
// tokens that would be gained in that time otherwise. Not thread-safe.
class PayingNodes final : public DraftWorth {
 public:
  // Called before a draft. curve must outlive it; prices: of a node after 0, 1, .. others.
  void begin(const TrustCurve& curve, const PayingStop::Prices& prices);
  // Called after the verdict: updates the curve by the drafted and refused tokens.
  void learn(const DraftTree& tree, const Verdict& verdict, TrustCurve& curve) const;
  // The same for a withdrawn draft; first: the text's actual next token.
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

#endif  // OUTRIDER_ENGINE_DRAFTING_PAYING_NODES_H_
