// SPDX-License-Identifier: Apache-2.0
#include "speculate/drafters/composite/relay_drafter.h"

#include <algorithm>
#include <utility>

#include "outrider/error.h"
#include "speculate/tree_shapes/fixed_shape.h"
#include "speculate/tree_shapes/open_shape.h"

namespace outrider {
namespace {

// The first of the deepest drafted nodes.
int deepest(const DraftTree& tree) {
  int leaf = 0;
  for (int node = 1; node <= tree.n_drafted(); ++node) {
    if (tree.node(node).depth > tree.node(leaf).depth) leaf = node;
  }
  return leaf;
}

}  // namespace

bool RelayDrafter::Stop::stop_after(TokenId token, double raw_prob) const {
  ended_ = ended_ || (whole_ != nullptr && whole_->stop_after(token, raw_prob));
  return ended_ || raw_prob < confidence_;
}

RelayDrafter::RelayDrafter(std::vector<CompositeDrafter::Part> parts, const DrafterTraits& traits)
    : parts_(std::move(parts)), traits_(traits) {
  for (const CompositeDrafter::Part& part : parts_)
    chains_.push_back(chain_shape(part.shape->depth()));
}
RelayDrafter::~RelayDrafter() = default;

bool RelayDrafter::uses_target_cache() const {
  return std::any_of(parts_.begin(), parts_.end(), [](const CompositeDrafter::Part& part) {
    return part.drafter->uses_target_cache();
  });
}

void RelayDrafter::begin(const Context& context) {
  State& state = states_[context.id];
  state.parts = std::vector<PartOfText>(parts_.size());
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    state.parts[part].tokens.assign(context.tokens.begin(), context.tokens.end());
    parts_[part].drafter->begin(context);
  }
}

void RelayDrafter::prefill(const Context& context, std::span<const TokenId> tokens,
                           const FeatureRows& features) {
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    parts_[part].drafter->prefill(context, tokens, part == 0 ? features : FeatureRows{});
  }
}

// Sets a part's own text to the text plus the draft's path to `leaf`.
void RelayDrafter::show(std::size_t part, PartOfText& own, const DraftJob& job, int leaf) {
  own.context = *job.context;
  if (part == 0) return;  // its text is the real one
  const std::span<const TokenId> text = job.context->tokens;
  job.tree->path_tokens(leaf, path_);
  std::size_t n_common = 0;
  while (n_common < std::min(own.tokens.size(), text.size()) &&
         own.tokens[n_common] == text[n_common]) {
    ++n_common;
  }
  const bool as_it_was = n_common == own.tokens.size() && n_common == text.size();
  own.tokens.resize(n_common);
  own.tokens.insert(own.tokens.end(), text.begin() + static_cast<std::ptrdiff_t>(n_common),
                    text.end());
  own.tokens.insert(own.tokens.end(), path_.begin(), path_.end());
  own.history = *job.context->history;
  for (const TokenId token : path_) own.history.add_generated(token);
  own.context.tokens = own.tokens;
  own.context.history = &own.history;
  if (!as_it_was || !path_.empty()) parts_[part].drafter->rewind(own.context, n_common);
}

// Adds a part's job for a text to jobs_. Returns false if the budget is used up.
bool RelayDrafter::ask(std::size_t part, DraftJob& whole) {
  const CompositeDrafter::Part& drafting = parts_[part];
  const int leaf = deepest(*whole.tree);
  const int depth = whole.tree->node(leaf).depth;
  const TreeShape& shape =
      whole.shape->is_chain() && !drafting.shape->is_chain() ? *chains_[part] : *drafting.shape;
  DraftJob job = whole;
  job.budget = {
      .depth = std::min(whole.budget.depth - depth, shape.depth()),
      .n_nodes = std::min(whole.budget.n_nodes - whole.tree->n_drafted(), shape.n_nodes()),
      .scratch_depth = whole.budget.scratch_depth - depth};
  // The first part is always asked: it may be asked for the root's distribution later (draft_at).
  if (part > 0 && (job.budget.depth <= 0 || job.budget.n_nodes <= 0)) return false;
  PartOfText& own = states_.at(whole.context->id).parts[part];
  show(part, own, whole, leaf);
  const std::span<const TokenId> tokens = own.context.tokens;
  own.draft.reset(tokens.back(), static_cast<std::int64_t>(tokens.size()), leaf);
  own.asked = true;
  // Keys use the round's position: a later round may begin where this part does.
  own.chance.reset(*whole.chance, {.stride = static_cast<int>(parts_.size()),
                                   .lane = static_cast<int>(part),
                                   .position = whole.tree->n_committed()});
  own.stop.emplace(whole.stop, drafting.confidence);
  job.context = &own.context;
  job.shape = &shape;
  job.stop = &*own.stop;
  job.chance = &own.chance;
  job.tree = &own.draft.tree();
  if (part > 0) job.judged = nullptr;  // it has not run the earlier parts' tokens
  jobs_.push_back(job);
  return true;
}

void RelayDrafter::propose(std::span<DraftJob> jobs) {
  going_on_.clear();
  for (DraftJob& job : jobs) {
    going_on_.push_back(&job);
    for (PartOfText& own : states_.at(job.context->id).parts) own.asked = false;
  }
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    jobs_.clear();
    std::erase_if(going_on_, [&](DraftJob* whole) { return !ask(part, *whole); });
    if (jobs_.empty()) break;
    parts_[part].drafter->propose(jobs_);
    std::erase_if(going_on_, [&](DraftJob* whole) {
      PartOfText& own = states_.at(whole->context->id).parts[part];
      own.draft.graft(*whole->tree, /*share_named=*/false, traits_.has_draft_prob);
      return own.stop->ended();
    });
  }
  for (DraftJob& job : jobs) {
    for (PartOfText& own : states_.at(job.context->id).parts) {
      if (own.asked) own.draft.graft_scratch(*job.tree);
    }
  }
}

void RelayDrafter::follow(PartOfText& first, const Context& context, const DraftTree& tree) {
  first.context = context;
  if (first.asked) return;
  first.draft.reset(tree.node(0).token, tree.n_committed(), 0);
  first.asked = true;
}

bool RelayDrafter::draft_at(const Context& context, const DraftTree& tree, int node,
                            Distribution& draft_prob, Distribution* raw_draft) {
  State& state = states_.at(context.id);
  follow(state.parts.front(), context, tree);
  // Asks the part that drafted there: the last one that has the node.
  for (std::size_t part = parts_.size(); part-- > 0;) {
    PartOfText& own = state.parts[part];
    if (!own.asked) continue;
    own.draft.match(tree);
    const int in_part = own.draft.own_node(node);
    if (in_part >= 0 && parts_[part].drafter->draft_at(own.context, own.draft.tree(), in_part,
                                                       draft_prob, raw_draft)) {
      return true;
    }
  }
  return false;
}

// Extends the text of a later part by the accepted nodes of its own draft and the next token. If
// earlier parts' tokens were rejected, another token followed in this part's view.
void RelayDrafter::move_on(PartOfText& own, const RoundResult& result) {
  const std::size_t n_before = own.tokens.size();
  for (const int node : result.verdict->path) own.tokens.push_back(result.tree->node(node).token);
  own.tokens.push_back(result.verdict->next);
  for (std::size_t at = n_before; at < own.tokens.size(); ++at) {
    own.history.add_generated(own.tokens[at]);
  }
  own.context.tokens = own.tokens;
}

void RelayDrafter::observe(std::span<const RoundResult> results) {
  for (const RoundResult& whole : results) {
    follow(states_.at(whole.context->id).parts.front(), *whole.context, *whole.tree);
  }
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    results_.clear();
    for (const RoundResult& whole : results) {
      PartOfText& own = states_.at(whole.context->id).parts[part];
      if (!std::exchange(own.asked, false)) continue;
      own.draft.match(*whole.tree);
      RoundResult& result = results_.emplace_back(own.draft.result(whole));
      if (part > 0) {
        move_on(own, result);
        result.features = {};
      }
      result.context = &own.context;
    }
    if (!results_.empty()) parts_[part].drafter->observe(results_);
  }
}

void RelayDrafter::rewind(const Context& context, std::size_t n_common) {
  // The other parts compare the texts when they are asked (show()).
  parts_.front().drafter->rewind(context, n_common);
}

void RelayDrafter::end(SequenceId id) {
  for (const CompositeDrafter::Part& part : parts_) part.drafter->end(id);
  states_.erase(id);
}

std::int64_t RelayDrafter::n_passes() const {
  std::int64_t n_passes = 0;
  for (const CompositeDrafter::Part& part : parts_) n_passes += part.drafter->n_passes();
  return n_passes;
}

DrafterPlan read_relay_drafter(std::span<const std::string> parts) {
  const std::vector<DrafterPlan> plans = read_parts("relay", "relay:A+B+...", parts);
  DrafterTraits traits{.has_draft_prob = true,
                       .prefix_determined = false,
                       .reads_features = plans.front().traits.reads_features};
  int depth = 0;
  int n_nodes = 0;
  bool chains = true;
  for (const DrafterPlan& plan : plans) {
    traits.has_draft_prob = traits.has_draft_prob && plan.traits.has_draft_prob;
    depth += plan.shape->depth();
    n_nodes += plan.shape->n_nodes();
    chains = chains && plan.shape->is_chain();
  }
  for (std::size_t part = 1; part < plans.size(); ++part) {
    if (!plans[part].traits.reads_features) continue;
    throw UsageError("read drafter", "relay",
                     "none but the first part to read features of the target", parts[part]);
  }
  depth = std::min(depth, kMaxDraftNodes);
  n_nodes = std::min(n_nodes, kMaxDraftNodes);
  std::shared_ptr<const TreeShape> shape = chain_shape(depth);
  if (!chains) shape = std::make_shared<OpenShape>(depth, n_nodes);
  return {.traits = traits,
          .shape = std::move(shape),
          .confidence = 0,  // each part has its own
          .make = [plans, traits](const DrafterMaterials& materials) {
            return std::make_unique<RelayDrafter>(make_parts(plans, materials), traits);
          }};
}

}  // namespace outrider
