// SPDX-License-Identifier: Apache-2.0
#include "speculate/drafters/heads/block_drafter.h"

#include <algorithm>
#include <utility>

#include "base/elementary.h"
#include "model/prefill.h"
#include "outrider/error.h"
#include "speculate/registry/drafter_weights.h"
#include "speculate/tree_shapes/fixed_shape.h"

namespace outrider {

BlockDrafter::BlockDrafter(std::unique_ptr<BlockHead> head, double min_confidence)
    : head_(std::move(head)),
      dim_(static_cast<std::size_t>(head_->dim())),
      min_confidence_(min_confidence) {}
BlockDrafter::~BlockDrafter() = default;

// Whether a block after a text of n tokens lies within the head's context. A text beyond it gets
// plain decoding for good, since texts only grow.
bool BlockDrafter::has_room(std::size_t n_tokens) const {
  const BlockHeadConfig& config = head_->config();
  return n_tokens + static_cast<std::size_t>(config.n_slots) <=
         static_cast<std::size_t>(config.layers.context_length) + 1;
}

// Whether the states of all tokens but the last are known.
bool BlockDrafter::is_ready(const Context& context, const State& state) const {
  const int n_tokens = static_cast<int>(context.tokens.size());
  const int n_known = state.states.n_known();
  return n_known > 0 && n_known + 1 == n_tokens && has_room(context.tokens.size());
}

// Queues the states of the next n tokens. Many at once are run in passes of bounded size.
void BlockDrafter::add_features(State& state, const FeatureRows& features, int n) {
  features_.clear();
  for (int i = 0; i < n; ++i) {
    const std::span<const float> row = features.row(i);
    features_.insert(features_.end(), row.begin(), row.end());
  }
  QueuedStates& states = state.states;
  head_->read(features_, states.add(n));
  for (; states.n_queued() > kPrefillRows; states.drop(kPrefillRows)) {
    const BlockHead::Known known = {.sequence = &states.sequence(),
                                    .states = states.first(kPrefillRows)};
    head_->remember({&known, 1});
    count_passes(1);
  }
}

void BlockDrafter::begin(const Context& context) {
  states_[context.id] = {
      .states = QueuedStates(head_->open(), dim_), .slot_outputs = {}, .markov = {}};
}

// A token's keys and values depend on its own state and position only.
std::size_t BlockDrafter::reusable(SequenceId earlier, std::size_t n_common) const {
  return std::min(n_common, static_cast<std::size_t>(states_.at(earlier).states.n_known()));
}

void BlockDrafter::begin_behind(const Context& context, SequenceId earlier, std::size_t n_run) {
  states_[context.id] = {
      .states = states_.at(earlier).states.fork(n_run), .slot_outputs = {}, .markov = {}};
}

void BlockDrafter::prefill(const Context& context, std::span<const TokenId> /*tokens*/,
                           const FeatureRows& features) {
  if (!has_room(context.tokens.size())) return;
  add_features(states_.at(context.id), features, features.n_rows());
}

std::size_t BlockDrafter::n_behind(const Context& context) const {
  return static_cast<std::size_t>(states_.at(context.id).states.n_queued());
}

int BlockDrafter::prepare(const DraftJob& job) {
  State& state = states_.at(job.context->id);
  state.slot_outputs.clear();
  state.n_wanted = 0;
  if (!is_ready(*job.context, state)) return 0;
  state.n_wanted = std::min({head_->config().n_drafted(), job.budget.depth, job.shape->depth()});
  return state.n_wanted;
}

// Runs the queued states of these texts, then one block for each.
void BlockDrafter::run_blocks(std::span<const Context* const> contexts) {
  known_.clear();
  blocks_.clear();
  for (const Context* context : contexts) {
    const QueuedStates& states = states_.at(context->id).states;
    blocks_.push_back({.sequence = &states.sequence(), .anchor = context->tokens.back()});
    if (states.n_queued() == 0) continue;
    known_.push_back({.sequence = &states.sequence(), .states = states.queued()});
  }
  if (!known_.empty()) head_->remember(known_);
  const std::size_t n_slot_outputs = static_cast<std::size_t>(head_->config().n_drafted()) * dim_;
  slot_outputs_.resize(contexts.size() * n_slot_outputs);
  head_->draft(blocks_, slot_outputs_);
  for (std::size_t i = 0; i < contexts.size(); ++i) {
    State& state = states_.at(contexts[i]->id);
    state.states.clear();
    const auto its =
        std::span<const float>(slot_outputs_).subspan(i * n_slot_outputs, n_slot_outputs);
    state.slot_outputs.assign(its.begin(), its.end());
  }
}

// Computes the logits of all requested levels in one product with the output matrix.
void BlockDrafter::project_blocks(std::span<const Growing> drafts, ForwardOutput& output) {
  slot_outputs_.clear();
  int row = 0;
  for (const Growing& draft : drafts) {
    State& state = states_.at(draft.context().id);
    const auto wanted = std::span<const float>(state.slot_outputs)
                            .first(static_cast<std::size_t>(state.n_wanted) * dim_);
    slot_outputs_.insert(slot_outputs_.end(), wanted.begin(), wanted.end());
    state.first_row = std::exchange(row, row + state.n_wanted);
  }
  head_->project(slot_outputs_, output);
}

// The first level runs the blocks. The others look up their rows and, for dspark, run the Markov
// head, which is no pass.
LevelwiseDrafter::RowPer BlockDrafter::run_level(int level, std::span<const Growing> drafts) {
  const bool follows = head_->markov() != nullptr;
  if (level == 0) {
    contexts_.clear();
    for (const Growing& draft : drafts) contexts_.push_back(&draft.context());
    run_blocks(contexts_);
    project_blocks(drafts, follows ? slots_ : output());
  } else {
    count_passes(-1);
  }
  if (follows) {
    run_markov_level(drafts);
    return RowPer::node;
  }
  return list_rows(drafts, [this](const Context& context, int depth) {
    return states_.at(context.id).first_row + depth;
  });
}

// The node without its Markov state, which is zero at the first slot.
MarkovHead::Node BlockDrafter::markov_node(const Context& context, const State& state,
                                           const DraftTree& tree, int node) const {
  const auto slot = static_cast<std::size_t>(tree.node(node).depth);
  return {.token = node == 0 ? context.tokens.back() : tree.node(node).token,
          .slot_output = std::span<const float>(state.slot_outputs).subspan(slot * dim_, dim_),
          .state = {}};
}

// The probability that the token drawn after a node will be accepted, if the node is.
double BlockDrafter::confidence(const Growing& draft, int node) const {
  const State& state = states_.at(draft.context().id);
  return head_->markov()->confidence(markov_node(draft.context(), state, draft.tree(), node));
}

bool BlockDrafter::ends_path(const Growing& draft, int node) {
  return min_confidence_ > 0 && confidence(draft, node) < min_confidence_;
}

double BlockDrafter::log_trust(const Growing& draft, int node) {
  const MarkovHead* const markov = head_->markov();
  if (markov == nullptr || !markov->has_confidence()) return 0;
  return portable_log(confidence(draft, node));
}

// output() of a node = its slot's logits + the Markov head's logits.
void BlockDrafter::add_markov(std::size_t row, std::span<const float> slot) {
  const std::size_t first = row * slot.size();
  const std::span<const float> added = added_.logits.values().subspan(first, slot.size());
  float* const to = logits_ + first;
  for (std::size_t token = 0; token < slot.size(); ++token) to[token] = slot[token] + added[token];
}

void BlockDrafter::run_markov_level(std::span<const Growing> drafts) {
  MarkovHead& markov = *head_->markov();
  const auto rank = static_cast<std::size_t>(markov.rank());
  nodes_.clear();
  for (const Growing& draft : drafts) {
    State& state = states_.at(draft.context().id);
    // Resized before spans into it are taken.
    state.markov.resize(static_cast<std::size_t>(draft.tree().n_nodes()) * rank);
    for (const int node : draft.frontier()) {
      if (ends_path(draft, node)) continue;
      MarkovHead::Node& one =
          nodes_.emplace_back(markov_node(draft.context(), state, draft.tree(), node));
      if (node == 0) continue;
      const auto parent = static_cast<std::size_t>(draft.tree().node(node).parent);
      one.state = std::span<const float>(state.markov).subspan(parent * rank, rank);
    }
  }
  states_of_nodes_.resize(nodes_.size() * rank);
  latents_.resize(nodes_.size() * rank);
  markov.read(nodes_, states_of_nodes_, latents_);
  markov.give(latents_, added_);
  const int vocabulary_size = slots_.logits.vocabulary_size();
  logits_ = output().logits.start_pass(static_cast<int>(nodes_.size()), vocabulary_size);
  output().feature_width = 0;
  std::size_t row = 0;
  for (const Growing& draft : drafts) {
    State& state = states_.at(draft.context().id);
    for (const int node : draft.frontier()) {
      if (ends_path(draft, node)) continue;
      const int depth = draft.tree().node(node).depth;
      add_markov(row, slots_.logits_row(state.first_row + depth));
      std::copy_n(states_of_nodes_.begin() + static_cast<std::ptrdiff_t>(row * rank), rank,
                  state.markov.begin() +
                      static_cast<std::ptrdiff_t>(node) * static_cast<std::ptrdiff_t>(rank));
      ++row;
    }
  }
}

// Writes the logits after one node to output(), from those of its slot. The Markov head reads the
// node's whole path again, since nodes may have been renumbered after they grew.
void BlockDrafter::run_markov_path(const Context& context, const DraftTree& tree, int node) {
  MarkovHead& markov = *head_->markov();
  const auto rank = static_cast<std::size_t>(markov.rank());
  const State& state = states_.at(context.id);
  path_.clear();
  for (int at = node; at != 0; at = tree.node(at).parent) path_.push_back(at);
  path_.push_back(0);
  std::reverse(path_.begin(), path_.end());
  latents_.resize(rank);
  states_of_nodes_.assign(2 * rank, 0);  // before a node and after it
  const std::span<float> before = std::span(states_of_nodes_).first(rank);
  const std::span<float> behind = std::span(states_of_nodes_).subspan(rank);
  for (const int at : path_) {
    MarkovHead::Node one = markov_node(context, state, tree, at);
    one.state = before;
    markov.read({&one, 1}, behind, latents_);
    std::copy(behind.begin(), behind.end(), before.begin());
  }
  markov.give(latents_, added_);
  const std::span<const float> slot = slots_.logits_row(0);
  logits_ = output().logits.start_pass(1, slots_.logits.vocabulary_size());
  output().feature_width = 0;
  add_markov(0, slot);
}

bool BlockDrafter::run_node(const Context& context, const DraftTree& tree, int node) {
  State& state = states_.at(context.id);
  const int depth = tree.node(node).depth;
  if (depth >= head_->config().n_drafted()) return false;
  if (state.slot_outputs.empty()) {
    if (!is_ready(context, state)) return false;
    const Context* const its = &context;
    run_blocks({&its, 1});
  }
  const bool follows = head_->markov() != nullptr;
  const auto at = static_cast<std::size_t>(depth) * dim_;
  head_->project(std::span<const float>(state.slot_outputs).subspan(at, dim_),
                 follows ? slots_ : output());
  if (follows) run_markov_path(context, tree, node);
  return true;
}

void BlockDrafter::observe(std::span<const RoundResult> results) {
  for (const RoundResult& result : results) {
    State& state = states_.at(result.context->id);
    state.slot_outputs.clear();
    const std::size_t n_tokens = result.context->tokens.size();
    if (!has_room(n_tokens)) {
      state.states.clear();
      continue;
    }
    // The root and the accepted tokens but the newest, which is the next anchor. If earlier
    // features were left out, these are useless.
    const int n_new = static_cast<int>(n_tokens) - 1 - state.states.n_known();
    if (n_new > 0 && n_new <= result.features.n_rows()) {
      add_features(state, result.features, n_new);
    }
  }
}

void BlockDrafter::end(SequenceId id) { states_.erase(id); }

namespace {

DrafterPlan plan_of(const Spec& spec, BlockHeadKind kind, std::string_view form,
                    double min_confidence) {
  return {.traits = {.has_draft_prob = true, .prefix_determined = false, .reads_features = true},
          .shape = chain_shape(kDeepestDraft),
          .confidence = spec.number("confidence", 0, 1).value_or(0),
          .make = [path = spec.required_value(form), kind, min_confidence,
                   weights = DrafterWeights::read(spec)](const DrafterMaterials& materials) {
            auto head =
                load_block_head(path, *materials.target, kind, weights.options(materials.load));
            if (min_confidence > 0 && !head->markov()->has_confidence()) {
              throw Error("load block head", path, "a confidence head, for accept=", "none");
            }
            return std::make_unique<BlockDrafter>(std::move(head), min_confidence);
          }};
}

}  // namespace

DrafterPlan read_dflash_drafter(const Spec& spec) {
  return plan_of(spec, BlockHeadKind::dflash, "dflash:PATH", 0);
}

DrafterPlan read_dspark_drafter(const Spec& spec) {
  return plan_of(spec, BlockHeadKind::dspark, "dspark:PATH",
                 spec.number("accept", 0, 1).value_or(0));
}

}  // namespace outrider
