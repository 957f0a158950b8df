// SPDX-License-Identifier: Apache-2.0
#include "speculate/drafters/heads/assistant_drafter.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace outrider {

AssistantDrafter::AssistantDrafter(std::unique_ptr<Gemma4Assistant> assistant)
    : assistant_(std::move(assistant)), dim_(static_cast<std::size_t>(assistant_->state_dim())) {}
AssistantDrafter::~AssistantDrafter() = default;

void AssistantDrafter::begin(const Context& context) { states_[context.id] = {}; }

// Of an earlier text only the state at its last place is known. For a shorter prefix the target
// runs one token again, which gives the state there.
std::size_t AssistantDrafter::reusable(SequenceId earlier, std::size_t n_common) const {
  const auto n_run = static_cast<std::size_t>(states_.at(earlier).n_run);
  return n_run <= n_common ? n_run : n_common - std::min<std::size_t>(n_common, 1);
}

void AssistantDrafter::begin_behind(const Context& context, SequenceId earlier, std::size_t n_run) {
  const State& known = states_.at(earlier);
  State state;
  state.n_run = static_cast<int>(n_run);
  if (known.n_run == state.n_run) state.last = known.last;
  states_[context.id] = std::move(state);
}

// Takes the last of the n new feature rows.
void AssistantDrafter::take_features(State& state, const FeatureRows& features, int n) {
  if (n <= 0) return;
  const std::span<const float> last = features.row(n - 1);
  state.last.assign(last.begin(), last.end());
  state.n_run += n;
}

void AssistantDrafter::prefill(const Context& context, std::span<const TokenId> /*tokens*/,
                               const FeatureRows& features) {
  take_features(states_.at(context.id), features, features.n_rows());
}

int AssistantDrafter::prepare(const DraftJob& job) {
  State& state = states_.at(job.context->id);
  state.row_of.clear();
  state.predicted_states.clear();
  state.leaves.clear();
  state.leaf_logits.clear();
  state.judged = nullptr;
  const auto n_run = static_cast<int>(job.context->tokens.size()) - 1;
  if (state.last.empty() || state.n_run != n_run) return 0;
  if (job.judged == nullptr || job.judged->n_kept() != n_run) return 0;
  if (!assistant_->can_read(*job.judged)) return 0;
  state.judged = job.judged;
  if (job.budget.depth > 0 && job.budget.n_nodes > 0) return job.budget.depth;
  if (job.asks_at_leaves) run_leaves(state, *job.tree);
  return 0;
}

void AssistantDrafter::clear_rows() {
  readers_.clear();
  tokens_.clear();
  row_states_.clear();
}

// Adds the rows of nodes whose parents have been run.
void AssistantDrafter::add_rows(State& state, const DraftTree& tree, std::span<const int> nodes) {
  readers_.push_back({.sequence = state.judged, .n_rows = static_cast<int>(nodes.size())});
  for (const int node : nodes) {
    tokens_.push_back(tree.node(node).token);
    std::span<const float> input = state.last;
    if (node > 0) {
      const auto parent = static_cast<std::size_t>(tree.node(node).parent);
      const auto row = static_cast<std::size_t>(state.row_of[parent]);
      input = std::span<const float>(state.predicted_states).subspan(row * dim_, dim_);
    }
    row_states_.insert(row_states_.end(), input.begin(), input.end());
  }
}

void AssistantDrafter::run_rows() { assistant_->forward(readers_, tokens_, row_states_, output()); }

LevelwiseDrafter::RowPer AssistantDrafter::run_level(int /*level*/,
                                                     std::span<const Growing> drafts) {
  clear_rows();
  for (const Growing& draft : drafts) {
    add_rows(states_.at(draft.context().id), draft.tree(), draft.frontier());
  }
  run_rows();
  int row = 0;
  for (const Growing& draft : drafts) {
    State& state = states_.at(draft.context().id);
    state.row_of.resize(static_cast<std::size_t>(draft.tree().n_nodes()), -1);
    for (const int node : draft.frontier()) {
      const std::span<const float> predicted = output().feature_row(row++);
      state.row_of[static_cast<std::size_t>(node)] =
          static_cast<int>(state.predicted_states.size() / dim_);
      state.predicted_states.insert(state.predicted_states.end(), predicted.begin(),
                                    predicted.end());
    }
  }
  return RowPer::node;
}

void AssistantDrafter::complete(const Growing& draft) {
  State& state = states_.at(draft.context().id);
  draft.growth->renumber(state.row_of);
  if (draft.job->asks_at_leaves) run_leaves(state, draft.tree());
  state.judged = nullptr;
}

// Runs the nodes without rows: a rule may ask for the distribution after each of them.
void AssistantDrafter::run_leaves(State& state, const DraftTree& tree) {
  state.row_of.resize(static_cast<std::size_t>(tree.n_nodes()), -1);
  for (int node = 0; node < tree.n_nodes(); ++node) {
    if (state.row_of[static_cast<std::size_t>(node)] < 0) state.leaves.push_back(node);
  }
  if (state.leaves.empty()) return;
  clear_rows();
  add_rows(state, tree, state.leaves);
  run_rows();
  count_passes(1);
  for (std::size_t row = 0; row < state.leaves.size(); ++row) {
    const std::span<const float> logits = output().logits_row(static_cast<int>(row));
    state.leaf_logits.insert(state.leaf_logits.end(), logits.begin(), logits.end());
  }
}

bool AssistantDrafter::run_node(const Context& context, const DraftTree& /*tree*/, int node) {
  const State& state = states_.at(context.id);
  const auto at = std::find(state.leaves.begin(), state.leaves.end(), node);
  if (at == state.leaves.end()) return false;
  const auto n_tokens = static_cast<std::size_t>(assistant_->vocabulary_size());
  const auto leaf = static_cast<std::size_t>(at - state.leaves.begin());
  std::copy_n(state.leaf_logits.data() + leaf * n_tokens, n_tokens,
              output().logits.start_pass(1, assistant_->vocabulary_size()));
  count_passes(-1);  // its row was run with the draft
  return true;
}

void AssistantDrafter::observe(std::span<const RoundResult> results) {
  for (const RoundResult& result : results) {
    State& state = states_.at(result.context->id);
    state.judged = nullptr;
    state.leaves.clear();  // they belong to the old text
    state.leaf_logits.clear();
    // The root and the accepted tokens, as far as they were committed. If earlier features were
    // left out, the position of these is unknown.
    const int n_new = static_cast<int>(result.context->tokens.size()) - 1 - state.n_run;
    if (n_new <= result.features.n_rows()) take_features(state, result.features, n_new);
  }
}

void AssistantDrafter::end(SequenceId id) { states_.erase(id); }

}  // namespace outrider
