// SPDX-License-Identifier: Apache-2.0
// Chow's rule: defer where the drafter is not confident enough,
//   expected_loss(draft) > alpha,  that is  max draft < 1 - alpha  for the 0-1 loss,
// on raw distributions. It is the plug-in for a constant price alpha of deferral (Chow 1970;
// Narasimhan et al. 2024, eq. 2). alpha = 1 leaves all to the drafter, alpha < 0 all to the target.
#ifndef OUTRIDER_SPECULATE_RULES_CHOW_H_
#define OUTRIDER_SPECULATE_RULES_CHOW_H_

#include "speculate/rules/cascade_rule.h"
#include "speculate/rules/expected_loss.h"

namespace outrider {

class ChowRule final : public DeferralRule {
 public:
  ChowRule(double alpha, Loss loss) : alpha_(alpha), loss_(loss) {}
  const char* name() const override { return "chow"; }

 private:
  bool defers(NodeViews& views, int node) const override;

  double alpha_;
  Loss loss_;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_RULES_CHOW_H_
