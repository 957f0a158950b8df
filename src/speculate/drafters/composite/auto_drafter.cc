// SPDX-License-Identifier: Apache-2.0
#include "speculate/drafters/composite/auto_drafter.h"

#include <algorithm>
#include <utility>

#include "speculate/drafters/own_parts.h"
#include "speculate/registry/drafter_registry.h"

namespace outrider {
namespace {

// Whether a part must see every token: one round could not make up for a backlog in the target's
// own cache.
bool must_be_shown(const Drafter& part) {
  return part.traits().reads_features || (part.catches_up() && part.uses_target_cache());
}

}  // namespace

AutoDrafter::AutoDrafter(std::vector<CompositeDrafter::Part> parts,
                         std::shared_ptr<const TreeShape> shape, DrafterTraits traits)
    : CompositeDrafter(std::move(parts), std::move(shape)), traits_(traits) {
  for (std::size_t index = 0; index < n_parts(); ++index) {
    const CompositeDrafter::Part& its = part(index);
    const TreeShape* const deepest = its.deepest ? its.deepest.get() : its.shape.get();
    choices_.push_back({its.drafter.get(), deepest, its.spec});
    catches_up_ = catches_up_ && !must_be_shown(*its.drafter);
    (its.drafter->rates_tokens() ? rating_ : others_).push_back(index);
  }
}

void AutoDrafter::prefill(const Context& context, std::span<const TokenId> tokens,
                          const FeatureRows& features) {
  for (std::size_t index = 0; index < n_parts(); ++index) {
    if (must_be_shown(*part(index).drafter)) prefill_part(index, context, tokens, features);
  }
}

void AutoDrafter::propose(std::span<DraftJob> jobs) {
  forget_drafts(jobs);
  look_up(jobs);
  for (DraftJob& job : jobs) {
    if (job.choice != nullptr) take_found(job);
  }
  for (const std::size_t index : others_) {
    asked_.clear();
    for (DraftJob& job : jobs) {
      const DraftChoice* const choice = job.choice;
      if (choice != nullptr && choice->taken == DraftChoice::kNone && choice->depth > 0 &&
          choice->part == static_cast<int>(index)) {
        asked_.push_back(&job);
      }
    }
    if (asked_.empty()) continue;
    draft(index, asked_, Room::all);
    for (DraftJob* const job : asked_) {
      if (take(index, *job)) job->choice->taken = static_cast<int>(index);
    }
  }
  take_first(jobs);
  finish(jobs);
}

// Asks the lookup parts, which cost next to nothing, for their drafts.
void AutoDrafter::look_up(std::span<DraftJob> jobs) {
  asked_.clear();
  for (DraftJob& job : jobs) {
    if (job.choice == nullptr) continue;
    job.choice->taken = DraftChoice::kNone;
    asked_.push_back(&job);
  }
  if (asked_.empty()) return;
  for (const std::size_t index : rating_) draft(index, asked_, Room::all);
}

void AutoDrafter::take_found(DraftJob& job) {
  DraftChoice& choice = *job.choice;
  double most = choice.floor;
  for (const std::size_t index : rating_) {
    const DraftTree& tree = drafted(index, job.context->id);
    const double gain = choice.worths[index]->gain(tree);
    if (tree.n_drafted() == 0 || gain <= most) continue;
    most = gain;
    choice.taken = static_cast<int>(index);
  }
  for (const std::size_t index : rating_) {
    if (choice.taken == static_cast<int>(index)) {
      take(index, job);
    } else {
      choice.worths[index]->withdraw(drafted(index, job.context->id));
    }
  }
}

void AutoDrafter::take_first(std::span<DraftJob> jobs) {
  asked_.clear();
  for (DraftJob& job : jobs) {
    if (job.choice == nullptr) asked_.push_back(&job);
  }
  for (const std::vector<std::size_t>* const parts : {&rating_, &others_}) {
    for (const std::size_t index : *parts) {
      if (asked_.empty()) return;
      draft(index, asked_, Room::all);
      std::erase_if(asked_, [&](DraftJob* job) { return take(index, *job); });
    }
  }
}

// Returns false if there is no draft.
bool AutoDrafter::take(std::size_t index, DraftJob& job) {
  if (drafted(index, job.context->id).n_drafted() == 0) return false;
  graft(index, job, /*share_named=*/false);
  return true;
}

namespace {

DrafterTraits traits_of(std::span<const DrafterPlan> plans) {
  DrafterTraits traits{.has_draft_prob = true, .prefix_determined = false};
  for (const DrafterPlan& plan : plans) {
    traits.has_draft_prob = traits.has_draft_prob && plan.traits.has_draft_prob;
    traits.reads_features = traits.reads_features || plan.traits.reads_features;
  }
  return traits;
}

// A shape large enough for drafts that end where they do not pay.
std::shared_ptr<const TreeShape> shape_over_deepest(std::vector<DrafterPlan> plans) {
  for (DrafterPlan& plan : plans) {
    if (plan.deepest != nullptr) plan.shape = plan.deepest;
  }
  return shape_over(plans);
}

std::unique_ptr<Drafter> make_auto_drafter(std::span<const std::string> specs,
                                           std::span<const DrafterPlan> plans,
                                           const std::shared_ptr<const TreeShape>& shape,
                                           const DrafterMaterials& materials) {
  std::vector<CompositeDrafter::Part> made = make_parts(plans, materials);
  for (std::size_t i = 0; i < made.size(); ++i) {
    made[i].spec = specs[i];
    made[i].deepest = plans[i].deepest;
  }
  return std::make_unique<AutoDrafter>(std::move(made), shape, traits_of(plans));
}

std::vector<DrafterPlan> read_all(std::span<const std::string> specs) {
  std::vector<DrafterPlan> plans;
  plans.reserve(specs.size());
  for (const std::string& spec : specs) plans.push_back(read_drafter(spec));
  return plans;
}

// "auto": its parts are known once the target is.
DrafterPlan plan_own_parts() {
  const std::vector<DrafterPlan> possible = read_all(every_own_part());
  const auto shape = shape_over_deepest(possible);
  return {.traits = traits_of(possible),
          .shape = shape,
          .make = [shape](const DrafterMaterials& materials) {
            const std::vector<std::string> specs = own_parts(materials.target_path);
            return make_auto_drafter(specs, read_all(specs), shape, materials);
          }};
}

}  // namespace

DrafterPlan read_auto_drafter(std::span<const std::string> parts) {
  if (parts.empty()) return plan_own_parts();
  const std::vector<DrafterPlan> plans = read_parts("auto", "auto:A,B,...", parts);
  const auto shape = shape_over_deepest(plans);
  const std::vector<std::string> specs(parts.begin(), parts.end());
  return {.traits = traits_of(plans),
          .shape = shape,
          .make = [plans, specs, shape](const DrafterMaterials& materials) {
            return make_auto_drafter(specs, plans, shape, materials);
          }};
}

}  // namespace outrider
