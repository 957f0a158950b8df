// SPDX-License-Identifier: Apache-2.0
#include "speculate/drafters/target/jacobi_drafter.h"

#include <algorithm>
#include <cstddef>
#include <memory>

#include "speculate/tree_shapes/fixed_shape.h"

namespace outrider {

void JacobiDrafter::propose(std::span<DraftJob> jobs) {
  for (DraftJob& job : jobs) {
    const std::vector<TokenId>& block = blocks_.at(job.context->id);
    DraftTree& tree = *job.tree;
    const int length = std::min({job.budget.depth, job.budget.n_nodes, job.shape->depth()});
    for (int node = 0; node < length; ++node) {
      const auto index = static_cast<std::size_t>(node);
      tree.add_child(node, index < block.size() ? block[index] : tree.node(0).token, kPointMass);
    }
  }
}

void JacobiDrafter::observe(std::span<const RoundResult> results) {
  for (const RoundResult& result : results) {
    std::vector<TokenId>& block = blocks_.at(result.context->id);
    block.clear();
    // The verifier's token replaces the first rejected node. What followed that node is the next
    // guess.
    const auto n_accepted = static_cast<int>(result.verdict->path.size());
    for (int node = n_accepted + 1; node <= result.tree->n_drafted(); ++node) {
      block.push_back(guesses_.behind(result, node, n_accepted));
    }
  }
}

void JacobiDrafter::rewind(const Context& context, std::size_t) { blocks_.at(context.id).clear(); }

DrafterPlan read_jacobi_drafter(const Spec& spec) {
  spec.require_no_value();
  DrafterPlan plan;
  plan.shape = chain_shape(spec.integer("length", 1, kMaxDraftNodes).value_or(kDefaultDraftLength));
  plan.make = [](const DrafterMaterials&) { return std::make_unique<JacobiDrafter>(); };
  return plan;
}

}  // namespace outrider
