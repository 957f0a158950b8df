// SPDX-License-Identifier: Apache-2.0
// The optimal rule of speculative cascades. Deferral costs rejections, and a draft is rejected with
// probability equal to the total variation between the two models' distributions, so that is its
// price:
//   expected_loss(draft) > expected_loss(target) + alpha * total_variation
//   that is  max draft < max target - alpha * total_variation  for the 0-1 loss.
// Losses are those of raw distributions. The total variation is that of the transformed ones, from
// which tokens are drawn (Narasimhan et al. 2024, lemma 4, its plug-in and appendix C.1).
#ifndef OUTRIDER_SPECULATE_RULES_OPT_H_
#define OUTRIDER_SPECULATE_RULES_OPT_H_

#include "speculate/rules/cascade_rule.h"
#include "speculate/rules/expected_loss.h"

namespace outrider {

class OptRule final : public DeferralRule {
 public:
  OptRule(double alpha, Loss loss) : alpha_(alpha), loss_(loss) {}
  const char* name() const override { return "opt"; }

 private:
  bool defers(NodeViews& views, int node) const override;

  double alpha_;
  Loss loss_;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_RULES_OPT_H_
