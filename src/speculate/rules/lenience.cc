// SPDX-License-Identifier: Apache-2.0
#include "speculate/rules/lenience.h"

#include "base/elementary.h"
#include "speculate/rules/capped_draft.h"

namespace outrider {

void LenienceRule::interleave(NodeViews& views, int node, const Distribution& draft_prob,
                              Distribution& out) const {
  const Distribution& target_prob = views.target(node);
  if (function_ == Function::exp) {
    // Not below the probability itself, to which rounding could lower it for eps = 1.
    const auto cap = [this](double prob) {
      return prob > 0 ? std::max(prob, portable_exp(eps_ * portable_log(prob))) : 0.0;
    };
    capped_draft(draft_prob, target_prob, cap, 1.0, out);
  } else {
    const double factor = function_ == Function::linear ? 1 / eps_ : 1 / (eps_ * eps_);
    capped_draft(
        draft_prob, target_prob, [factor](double prob) { return factor * prob; }, 1.0, out);
  }
}

}  // namespace outrider
