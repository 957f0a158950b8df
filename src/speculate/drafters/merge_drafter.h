// Several drafters' trees united into one (SpecInfer: Miao et al., 2024, section 3: "merge-based
// speculative tree construction").
#ifndef OUTRIDER_SPECULATE_DRAFTERS_MERGE_DRAFTER_H_
#define OUTRIDER_SPECULATE_DRAFTERS_MERGE_DRAFTER_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "speculate/drafters/composite_drafter.h"

namespace outrider {

// The first part's tree, then what the second adds to it, and so on, as far as the budget goes;
// where a chain was asked for, the first draft that is not empty.
// Children of one node stand in the order of the parts, each with the law it was drawn from, which
// is all that multi-round verification asks (draft_tree.h). Tokens that were named outright, and
// that an earlier part has named at the same place, share its node; a sampled token does not, for
// its own residual step is owed. What parts draw has keys of its own: with a common key the second
// part's draws would depend on the first's, and verification would be biased.
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

#endif  // OUTRIDER_SPECULATE_DRAFTERS_MERGE_DRAFTER_H_
