// SPDX-License-Identifier: Apache-2.0
// The confidence difference rule: defer where the target is more confident by more than alpha,
//   expected_loss(draft) > expected_loss(target) + alpha,
//   that is  max draft < max target - alpha  for the 0-1 loss,
// on raw distributions (Narasimhan et al. 2024, eq. 5). A sequential cascade cannot use this rule,
// since it decides before the target runs. alpha = 1 leaves all to the drafter, alpha = -1 all to
// the target.
#ifndef OUTRIDER_SPECULATE_RULES_DIFF_H_
#define OUTRIDER_SPECULATE_RULES_DIFF_H_

#include "speculate/rules/cascade_rule.h"
#include "speculate/rules/expected_loss.h"

namespace outrider {

class DiffRule final : public DeferralRule {
 public:
  DiffRule(double alpha, Loss loss) : alpha_(alpha), loss_(loss) {}
  const char* name() const override { return "diff"; }

 private:
  bool defers(NodeViews& views, int node) const override;

  double alpha_;
  Loss loss_;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_RULES_DIFF_H_
