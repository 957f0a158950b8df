// SPDX-License-Identifier: Apache-2.0
#include "speculate/drafters/composite/merge_drafter.h"

#include <algorithm>

namespace outrider {

void MergeDrafter::propose(std::span<DraftJob> jobs) {
  forget_drafts(jobs);
  left_.clear();
  for (DraftJob& job : jobs) left_.push_back(&job);
  for (std::size_t part = 0; part < n_parts() && !left_.empty(); ++part) {
    draft(part, left_, Room::even);
    for (DraftJob* job : left_) graft(part, *job, /*share_named=*/true);
    std::erase_if(left_, [](const DraftJob* job) {
      const int n_drafted = job->tree->n_drafted();
      return n_drafted >= job->budget.n_nodes || (n_drafted > 0 && job->shape->is_chain());
    });
  }
  finish(jobs);
}

DrafterPlan read_merge_drafter(std::span<const std::string> parts) {
  const std::vector<DrafterPlan> plans = read_parts("merge", "merge:A+B+...", parts);
  const auto shape = shape_over(plans);
  const bool reads_features = std::any_of(plans.begin(), plans.end(), [](const DrafterPlan& plan) {
    return plan.traits.reads_features;
  });
  return {.traits = {.reads_features = reads_features},
          .shape = shape,
          .confidence = 0,  // each part has its own
          .make = [plans, shape](const DrafterMaterials& materials) {
            return std::make_unique<MergeDrafter>(make_parts(plans, materials), shape);
          }};
}

}  // namespace outrider
