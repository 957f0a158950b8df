// SPDX-License-Identifier: Apache-2.0
#include "speculate/drafters/composite/composite_drafter.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "outrider/error.h"
#include "speculate/registry/drafter_registry.h"
#include "speculate/tree_shapes/open_shape.h"

namespace outrider {

CompositeDrafter::CompositeDrafter(std::vector<Part> parts, std::shared_ptr<const TreeShape> shape)
    : parts_(std::move(parts)), shape_(std::move(shape)) {
  for (const Part& part : parts_) {
    const std::span<const int> layers = part.drafter->feature_layers();
    feature_layers_.insert(feature_layers_.end(), layers.begin(), layers.end());
  }
}
CompositeDrafter::~CompositeDrafter() = default;

bool CompositeDrafter::uses_target_cache() const {
  return std::any_of(parts_.begin(), parts_.end(),
                     [](const Part& part) { return part.drafter->uses_target_cache(); });
}

void CompositeDrafter::begin(const Context& context) {
  State& state = states_[context.id];
  state.parts = std::vector<PartOfText>(parts_.size());
  state.drafted = false;
  for (const Part& part : parts_) part.drafter->begin(context);
}

FeatureRows CompositeDrafter::features_of(std::size_t part, const FeatureRows& whole) const {
  const std::size_t n_own = parts_[part].drafter->feature_layers().size();
  if (n_own == 0 || whole.stride == 0) return {};
  std::size_t n_before = 0;
  for (std::size_t i = 0; i < part; ++i) n_before += parts_[i].drafter->feature_layers().size();
  const int layer_width = whole.width / static_cast<int>(feature_layers_.size());
  return {.values = whole.values,
          .stride = whole.stride,
          .first = whole.first + static_cast<int>(n_before) * layer_width,
          .width = static_cast<int>(n_own) * layer_width};
}

void CompositeDrafter::prefill(const Context& context, std::span<const TokenId> tokens,
                               const FeatureRows& features) {
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    prefill_part(part, context, tokens, features);
  }
}

void CompositeDrafter::prefill_part(std::size_t part, const Context& context,
                                    std::span<const TokenId> tokens, const FeatureRows& features) {
  parts_[part].drafter->prefill(context, tokens, features_of(part, features));
}

std::size_t CompositeDrafter::reusable(SequenceId earlier, std::size_t n_common) const {
  std::size_t n_run = n_common;
  // A part may reuse less once another has lowered n_run, so this repeats until nothing changes.
  for (std::size_t before = n_run + 1; n_run < before;) {
    before = n_run;
    for (const Part& part : parts_) n_run = std::min(n_run, part.drafter->reusable(earlier, n_run));
  }
  return n_run;
}

void CompositeDrafter::begin_behind(const Context& context, SequenceId earlier, std::size_t n_run) {
  State& state = states_[context.id];
  state.parts = std::vector<PartOfText>(parts_.size());
  state.drafted = false;
  for (const Part& part : parts_) part.drafter->begin_behind(context, earlier, n_run);
}

void CompositeDrafter::rewind(const Context& context, std::size_t n_common) {
  for (const Part& part : parts_) part.drafter->rewind(context, n_common);
}

void CompositeDrafter::forget_drafts(std::span<const DraftJob> jobs) {
  for (const DraftJob& job : jobs) {
    State& state = states_.at(job.context->id);
    state.drafted = false;
    match(state, *job.tree);
    state.drafted = true;
  }
}

void CompositeDrafter::match(State& state, const DraftTree& tree) {
  for (PartOfText& own : state.parts) {
    if (state.drafted) {
      own.draft.match(tree);
    } else {
      own.draft.reset(tree.node(0).token, tree.n_committed(), 0);
    }
  }
}

void CompositeDrafter::draft(std::size_t part, std::span<DraftJob* const> jobs, Room room) {
  const auto n_nodes = [&](const DraftJob& job) {
    const int left = job.budget.n_nodes - job.tree->n_drafted();
    const int n_left = static_cast<int>(parts_.size() - part);
    return room == Room::even && job.shape != shape_.get() ? (left + n_left - 1) / n_left : left;
  };
  const Part& drafting = parts_[part];
  jobs_.clear();
  for (const DraftJob* whole : jobs) {
    PartOfText& own = states_.at(whole->context->id).parts[part];
    own.chance.reset(*whole->chance,
                     {.stride = static_cast<int>(parts_.size()), .lane = static_cast<int>(part)});
    own.stop.emplace(whole->stop, drafting.confidence);
    DraftJob job = *whole;
    const DraftChoice* const choice = std::exchange(job.choice, nullptr);
    const TreeShape& own_shape =
        choice != nullptr && drafting.deepest ? *drafting.deepest : *drafting.shape;
    const TreeShape& shape = whole->shape == shape_.get() ? own_shape : *whole->shape;
    job.worth = choice != nullptr ? choice->worths[part] : nullptr;
    int depth = std::min(whole->budget.depth, shape.depth());
    if (choice != nullptr && choice->part == static_cast<int>(part)) {
      depth = std::min(depth, choice->depth);
    }
    job.shape = &shape;
    job.budget = {.depth = depth,
                  .n_nodes = std::min(n_nodes(*whole), shape.n_nodes()),
                  .scratch_depth = whole->budget.scratch_depth};
    job.stop = &*own.stop;
    job.chance = &own.chance;
    job.tree = &own.draft.tree();
    jobs_.push_back(job);
  }
  drafting.drafter->propose(jobs_);
}

const DraftTree& CompositeDrafter::drafted(std::size_t part, SequenceId id) const {
  return states_.at(id).parts[part].draft.tree();
}

void CompositeDrafter::graft(std::size_t part, DraftJob& job, bool share_named) {
  states_.at(job.context->id)
      .parts[part]
      .draft.graft(*job.tree, share_named, traits().has_draft_prob);
}

void CompositeDrafter::finish(std::span<DraftJob> jobs) {
  for (DraftJob& job : jobs) {
    for (PartOfText& own : states_.at(job.context->id).parts) {
      if (own.draft.is_grafted()) {
        own.draft.graft_scratch(*job.tree);
      } else {
        own.draft.reset(job.tree->node(0).token, job.tree->n_committed(), 0);
      }
    }
  }
}

bool CompositeDrafter::draft_at(const Context& context, const DraftTree& tree, int node,
                                Distribution& draft_prob, Distribution* raw_draft) {
  State& state = states_.at(context.id);
  match(state, tree);
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    const GraftedDraft& own = state.parts[part].draft;
    const int in_part = own.own_node(node);
    if (in_part >= 0 &&
        parts_[part].drafter->draft_at(context, own.tree(), in_part, draft_prob, raw_draft)) {
      return true;
    }
  }
  return false;
}

void CompositeDrafter::observe(std::span<const RoundResult> results) {
  for (const RoundResult& whole : results) match(states_.at(whole.context->id), *whole.tree);
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    results_.clear();
    for (const RoundResult& whole : results) {
      RoundResult& result =
          results_.emplace_back(states_.at(whole.context->id).parts[part].draft.result(whole));
      result.features = features_of(part, whole.features);
    }
    parts_[part].drafter->observe(results_);
  }
  for (const RoundResult& whole : results) states_.at(whole.context->id).drafted = false;
}

void CompositeDrafter::end(SequenceId id) {
  for (const Part& part : parts_) part.drafter->end(id);
  states_.erase(id);
}

std::int64_t CompositeDrafter::n_passes() const {
  std::int64_t n_passes = 0;
  for (const Part& part : parts_) n_passes += part.drafter->n_passes();
  return n_passes;
}

void refuse_updates(const DrafterPlan& part, std::string_view name) {
  if (!part.updates) return;
  throw UsageError("read drafter", std::string(name),
                   "updates=DIR of a model that drafts by itself", "one that is a part");
}

std::vector<DrafterPlan> read_parts(std::string_view name, std::string_view form,
                                    std::span<const std::string> specs) {
  if (specs.size() < 2) {
    throw UsageError("read drafter", std::string(name), fmt::format("{}, two or more", form),
                     specs.empty() ? "none" : specs.front());
  }
  std::vector<DrafterPlan> plans;
  for (const std::string& spec : specs) {
    plans.push_back(read_drafter(spec));
    refuse_updates(plans.back(), name);
  }
  return plans;
}

std::shared_ptr<const TreeShape> shape_over(std::span<const DrafterPlan> plans) {
  int depth = 0;
  int n_nodes = 0;
  for (const DrafterPlan& plan : plans) {
    depth = std::max(depth, plan.shape->depth());
    n_nodes += plan.shape->n_nodes();
  }
  return std::make_shared<OpenShape>(depth, std::min(n_nodes, kMaxDraftNodes));
}

std::vector<CompositeDrafter::Part> make_parts(std::span<const DrafterPlan> plans,
                                               const DrafterMaterials& materials) {
  std::vector<CompositeDrafter::Part> parts;
  for (const DrafterPlan& plan : plans) {
    parts.push_back({plan.make(materials), plan.shape, plan.confidence});
  }
  return parts;
}

}  // namespace outrider
