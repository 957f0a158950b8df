// SPDX-License-Identifier: Apache-2.0
#include "speculate/acceptances/acceptance.h"

#include "base/elementary.h"
#include "speculate/acceptances/block.h"
#include "speculate/acceptances/coupled.h"
#include "speculate/acceptances/multi_round.h"
#include "speculate/acceptances/traversal.h"

namespace outrider {

void cost_given_draft(const DraftTree& tree, NodeViews& views, Verdict& verdict) {
  verdict.costs.clear();
  for (const int node : verdict.path) {
    const double prob = views.target(tree.node(node).parent).prob(tree.node(node).token);
    verdict.costs.push_back(
        {.kl = -portable_log(prob), .total_variation = 1 - prob, .deferral = 0});
  }
  verdict.costs.push_back({.kl = 0, .total_variation = 0, .deferral = 1});
}

void Coupled::verify(const DraftTree& tree, NodeViews& views, Chance& chance,
                     Verdict& verdict) const {
  verdict.path.clear();
  verdict.costs.clear();
  int node = 0;
  for (;;) {
    rule_->rule_prob(views, node, verdict.next_prob);
    verdict.costs.push_back(cost_of(*rule_, views, node, verdict.next_prob));
    const std::int64_t position = tree.n_committed() + tree.node(node).depth;
    verdict.next = chance.categorical(verdict.next_prob, {position, 0, Purpose::token});
    int child = tree.next_child(node, node);
    verdict.corrected = child >= 0;
    while (child >= 0 && tree.node(child).token != verdict.next) {
      child = tree.next_child(node, child);
    }
    if (child < 0) return;
    verdict.path.push_back(child);
    node = child;
  }
}

std::unique_ptr<Acceptance> make_multi_round(std::shared_ptr<const Rule> rule) {
  return std::make_unique<MultiRound<MultiRoundSteps>>(std::move(rule));
}

std::unique_ptr<Acceptance> make_block(std::shared_ptr<const Rule> rule) {
  return std::make_unique<Block<BlockSteps>>(std::move(rule));
}

std::unique_ptr<Acceptance> make_traversal(std::shared_ptr<const Rule> rule) {
  return std::make_unique<Traversal<TraversalSteps>>(std::move(rule));
}

std::unique_ptr<Acceptance> make_coupled(std::shared_ptr<const Rule> rule) {
  return std::make_unique<Coupled>(std::move(rule));
}

}  // namespace outrider
