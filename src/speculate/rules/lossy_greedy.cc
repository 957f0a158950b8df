// SPDX-License-Identifier: Apache-2.0
#include "speculate/rules/lossy_greedy.h"

#include "sampling/divergence.h"

namespace outrider {

bool LossyGreedyRule::refuses(NodeViews& views, int node, const Distribution& draft_prob) const {
  const Distribution& target = views.raw_target(node);
  return target.prob(draft_prob.argmax()) < (1 - alpha_) * largest_prob(target);
}

void LossyGreedyRule::interleave(NodeViews& views, int node, const Distribution& draft_prob,
                                 Distribution& out) const {
  out = refuses(views, node, draft_prob) ? views.target(node) : draft_prob;
}

double LossyGreedyRule::deferred_share(NodeViews& views, int node, const Distribution& draft_prob,
                                       const Distribution&) const {
  return refuses(views, node, draft_prob) ? 1.0 : 0.0;
}

}  // namespace outrider
