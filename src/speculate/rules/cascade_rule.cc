// SPDX-License-Identifier: Apache-2.0
#include "speculate/rules/cascade_rule.h"

#include "sampling/divergence.h"

namespace outrider {

void CascadeRule::rule_prob(NodeViews& views, int node, Distribution& out) const {
  const Distribution* draft_prob = views.draft(node);
  if (draft_prob == nullptr) {
    out.assign(views.target(node));
  } else {
    interleave(views, node, *draft_prob, out);
  }
}

double CascadeRule::deferral(NodeViews& views, int node, const Distribution& rule_prob) const {
  const Distribution* draft_prob = views.draft(node);
  return draft_prob == nullptr ? 1.0 : deferred_share(views, node, *draft_prob, rule_prob);
}

double CascadeRule::deferred_share(NodeViews&, int, const Distribution& draft_prob,
                                   const Distribution& rule_prob) const {
  return total_variation(draft_prob, rule_prob);
}

void DeferralRule::interleave(NodeViews& views, int node, const Distribution& draft_prob,
                              Distribution& out) const {
  out.assign(defers(views, node) ? views.target(node) : draft_prob);
}

double DeferralRule::deferred_share(NodeViews& views, int node, const Distribution&,
                                    const Distribution&) const {
  return defers(views, node) ? 1.0 : 0.0;
}

}  // namespace outrider
