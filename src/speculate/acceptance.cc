#include "speculate/acceptance.h"

#include <algorithm>

#include "base/elementary.h"
#include "speculate/block.h"
#include "speculate/coupled.h"
#include "speculate/multi_round.h"
#include "speculate/traversal.h"

namespace outrider {
namespace {

// What is left of from[index], scaled, after `taken` took its share; `other` walks taken's support
// along with index.
double scaled_remainder(const Distribution& from, std::size_t index, double weight,
                        const Distribution& taken, std::size_t& other) {
  while (other < taken.ids.size() && taken.ids[other] < from.ids[index]) ++other;
  const bool shared = other < taken.ids.size() && taken.ids[other] == from.ids[index];
  return std::max(0.0, weight * from.probs[index] - (shared ? taken.probs[other] : 0.0));
}

}  // namespace

double scale_and_subtract(Distribution& from, double weight, const Distribution& taken) {
  double sum = 0;
  std::size_t kept = 0;
  std::size_t other = 0;
  for (std::size_t index = 0; index < from.ids.size(); ++index) {
    const double left = scaled_remainder(from, index, weight, taken, other);
    if (left <= 0) continue;
    from.ids[kept] = from.ids[index];
    from.probs[kept++] = left;
    sum += left;
  }
  from.ids.resize(kept);
  from.probs.resize(kept);
  return sum;
}

double scale_subtract_and_normalise(Distribution& from, double weight, const Distribution& taken) {
  double mass = 0;
  std::size_t other = 0;
  for (std::size_t index = 0; index < from.ids.size(); ++index) {
    mass += scaled_remainder(from, index, weight, taken, other);
  }
  if (!(mass > 0)) return 0;
  scale_and_subtract(from, weight, taken);
  for (double& prob : from.probs) prob /= mass;
  return mass;
}

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
