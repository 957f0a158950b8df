// SPDX-License-Identifier: Apache-2.0
// The form of a lossily verified distribution: the draft's, capped by the target's, with the
// cut-off mass given to tokens of which the draft has too little.
#ifndef OUTRIDER_SPECULATE_RULES_CAPPED_DRAFT_H_
#define OUTRIDER_SPECULATE_RULES_CAPPED_DRAFT_H_

#include <algorithm>
#include <cstddef>

#include "sampling/distribution.h"

namespace outrider {

// out <- m + (1 - sum m) normalise(max(0, floor * target_prob - draft_prob)),
//   m(v) = min(draft_prob(v), cap(target_prob(v))).
// It is the distribution of a draft token x accepted with probability min(1, cap(target_prob(x)) /
// draft_prob(x)) and otherwise replaced by one from the residual. floor >= 1, or the solution of
// sum of the residual = 1 - sum m; cap(t) >= t.
template <class Cap>
void capped_draft(const Distribution& draft_prob, const Distribution& target_prob, const Cap& cap,
                  double floor, Distribution& out) {
  double kept = 0;
  double residual = 0;
  for_each_in_either(draft_prob, target_prob, [&](TokenId, double in_draft, double in_target) {
    kept += std::min(in_draft, cap(in_target));
    residual += std::max(0.0, floor * in_target - in_draft);
  });
  const double cut_off = std::max(0.0, 1 - kept);
  // No residual means that nothing was cut off, up to rounding.
  const double share = residual > 0 ? cut_off / residual : 0.0;
  combine(
      draft_prob, target_prob,
      [&](TokenId, double in_draft, double in_target) {
        return std::min(in_draft, cap(in_target)) +
               share * std::max(0.0, floor * in_target - in_draft);
      },
      out);
}

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_RULES_CAPPED_DRAFT_H_
