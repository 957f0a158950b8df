// SPDX-License-Identifier: Apache-2.0
// The drafter `merge`: unites the trees of several drafters (SpecInfer: Miao et al., 2024, section
// 3: "merge-based speculative tree construction").
#ifndef OUTRIDER_SPECULATE_DRAFTERS_COMPOSITE_MERGE_DRAFTER_H_
#define OUTRIDER_SPECULATE_DRAFTERS_COMPOSITE_MERGE_DRAFTER_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "speculate/drafters/composite/composite_drafter.h"

namespace outrider {

// The first part's tree, then what the second adds to it, and so on, within the budget; for a
// chain, the first draft that is not empty. Children of one node are in the order of the parts,
// each with the distribution it was drawn from, as multi-round verification requires
// (draft_tree.h). A named token (a point mass) shares the node of the same token named by an
// earlier part. A sampled token does not, because its own residual step is needed. Each part's
// draws have separate keys: with a common key the second part's draws would depend on the first's,
// and verification would be biased.
class MergeDrafter final : public CompositeDrafter {
 public:
  using CompositeDrafter::CompositeDrafter;
  std::string_view name() const override { return "merge"; }
  // No part has distributions at the other parts' nodes.
  DrafterTraits traits() const override { return {.reads_features = !feature_layers().empty()}; }
  void propose(std::span<DraftJob> jobs) override;

 private:
  std::vector<DraftJob*> left_;
};

// "merge:A+B+...": specs of drafters. Throws UsageError for fewer than two.
DrafterPlan read_merge_drafter(std::span<const std::string> parts);

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_COMPOSITE_MERGE_DRAFTER_H_
