#include "speculate/drafters/merge_drafter.h"

#include <algorithm>

namespace outrider {

void MergeDrafter::propose(std::span<DraftJob> jobs) {
  forget_drafts(jobs);
  left_.clear();
  for (DraftJob& job : jobs) left_.push_back(&job);
  for (std::size_t part = 0; part < n_parts() && !left_.empty(); ++part) {
    draft(part, left_);
    for (DraftJob* job : left_) {
      const int before = job->tree->n_nodes();
      graft(part, *job, /*share_named=*/true);
      job->budget.n_nodes -= job->tree->n_nodes() - before;
    }
    std::erase_if(left_, [](const DraftJob* job) { return job->budget.n_nodes <= 0; });
  }
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
