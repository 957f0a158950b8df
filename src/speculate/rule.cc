// SPDX-License-Identifier: Apache-2.0
#include "speculate/rule.h"

#include "sampling/divergence.h"

namespace outrider {

double Rule::deferral(NodeViews&, int, const Distribution&) const { return 0; }

RuleCost cost_of(const Rule& rule, NodeViews& views, int node, const Distribution& rule_prob) {
  if (!rule.needs().draft_prob) return {};
  const Distribution& target_prob = views.target(node);
  return {.kl = kl_divergence(rule_prob, target_prob),
          .total_variation = total_variation(rule_prob, target_prob),
          .deferral = rule.deferral(views, node, rule_prob)};
}

}  // namespace outrider
