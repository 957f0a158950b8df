// SPDX-License-Identifier: Apache-2.0
#include "speculate/drafters/composite/first_drafter.h"

#include <algorithm>
#include <utility>

#include "speculate/tree_shapes/fixed_shape.h"

namespace outrider {

void FirstDrafter::propose(std::span<DraftJob> jobs) {
  forget_drafts(jobs);
  left_.clear();
  for (DraftJob& job : jobs) left_.push_back(&job);
  for (std::size_t part = 0; part < n_parts() && !left_.empty(); ++part) {
    draft(part, left_, Room::all);
    std::erase_if(left_, [&](DraftJob* job) {
      if (drafted(part, job->context->id).n_drafted() == 0) return false;
      graft(part, *job, /*share_named=*/false);
      return true;
    });
  }
  finish(jobs);
}

DrafterPlan read_first_drafter(std::span<const std::string> parts) {
  const std::vector<DrafterPlan> plans = read_parts("first", "first:A,B,...", parts);
  // Which part drafts, and so a position's distribution, depends on where the round begins.
  DrafterTraits traits{.has_draft_prob = true, .prefix_determined = false};
  for (const DrafterPlan& plan : plans) {
    traits.has_draft_prob = traits.has_draft_prob && plan.traits.has_draft_prob;
    traits.reads_features = traits.reads_features || plan.traits.reads_features;
  }
  // Only one part drafts at a time, so chains give a chain.
  int length = 0;
  bool chains = true;
  for (const DrafterPlan& plan : plans) {
    length = std::max(length, plan.shape->depth());
    chains = chains && plan.shape->is_chain();
  }
  const auto shape = chains ? chain_shape(length) : shape_over(plans);
  return {.traits = traits,
          .shape = shape,
          .confidence = 0,  // each part has its own
          .make = [plans, shape, traits](const DrafterMaterials& materials) {
            return std::make_unique<FirstDrafter>(make_parts(plans, materials), shape, traits);
          }};
}

}  // namespace outrider
