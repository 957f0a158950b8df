// SPDX-License-Identifier: Apache-2.0
#include "speculate/rules/lossy.h"

#include "speculate/rules/capped_draft.h"

namespace outrider {

double auto_floor(const Distribution& draft_prob, const Distribution& target_prob, double ceiling) {
  double wanted = 1;
  for_each_in_either(draft_prob, target_prob, [&](TokenId, double in_draft, double in_target) {
    wanted -= std::min(in_draft, ceiling * in_target);
  });
  if (wanted <= 0) return 0;
  // The left side is convex, increasing and piecewise linear in x. At x = 1 it is the total
  // variation, which is at least the wanted value. So Newton's steps from there descend to the root
  // without passing it, at least one linear piece each, and end where a step stays on its piece.
  double x = 1;
  for (;;) {
    double slope = 0;
    double below = 0;
    for_each_in_either(draft_prob, target_prob, [&](TokenId, double in_draft, double in_target) {
      if (in_draft >= x * in_target) return;
      slope += in_target;
      below += in_draft;
    });
    const double next = slope > 0 ? (wanted + below) / slope : x;
    if (!(next < x)) return x;
    x = next;
  }
}

void LossyRule::interleave(NodeViews& views, int node, const Distribution& draft_prob,
                           Distribution& out) const {
  const Distribution& target_prob = views.target(node);
  const double ceiling = 1 / (1 - alpha_);
  const double floor = beta_ ? 1 / *beta_ : auto_floor(draft_prob, target_prob, ceiling);
  capped_draft(
      draft_prob, target_prob, [ceiling](double prob) { return ceiling * prob; }, floor, out);
}

}  // namespace outrider
