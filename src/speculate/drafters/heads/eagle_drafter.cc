// SPDX-License-Identifier: Apache-2.0
#include "speculate/drafters/heads/eagle_drafter.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "model/heads/eagle_head.h"
#include "model/prefill.h"
#include "speculate/drafters/heads/parallel_eagle_drafter.h"
#include "speculate/registry/drafter_weights.h"
#include "speculate/tree_shapes/fixed_shape.h"

namespace outrider {

EagleDrafter::EagleDrafter(std::unique_ptr<FeatureHead> head)
    : head_(std::move(head)), dim_(static_cast<std::size_t>(head_->config().dim)), blocks_(dim_) {}
EagleDrafter::~EagleDrafter() = default;

// Whether the rows of a text of n tokens lie within the head's context. A text beyond it gets plain
// decoding for good, since texts only grow.
bool EagleDrafter::has_room(std::size_t n_tokens) const {
  return n_tokens <= static_cast<std::size_t>(head_->config().context_length) + 1;
}

// Whether the states of all rows are known and the last is queued; it gives the distribution after
// the root.
bool EagleDrafter::is_ready(const Context& context, const State& state) const {
  const std::size_t n_tokens = context.tokens.size();
  return state.states.n_queued() > 0 && state.states.n_known() + 1 == static_cast<int>(n_tokens) &&
         has_room(n_tokens);
}

// Queues the features of the next n places. Rows stay queued until a draft needs the last of them;
// many at once are run in passes of bounded size.
void EagleDrafter::add_features(const Context& context, State& state, const FeatureRows& features,
                                int n) {
  features_.clear();
  for (int i = 0; i < n; ++i) {
    const std::span<const float> row = features.row(i);
    features_.insert(features_.end(), row.begin(), row.end());
  }
  head_->read(features_, state.states.add(n));
  while (state.states.n_queued() > kPrefillRows) run_known(context, state, kPrefillRows);
}

// Adds the text's next n_rows rows, whose states are queued, as a block.
void EagleDrafter::add_known(const Context& context, const State& state, int n_rows) {
  const auto n_kept = static_cast<std::size_t>(state.states.sequence().n_kept());
  const auto n = static_cast<std::size_t>(n_rows);
  blocks_.begin_block(state.states.sequence());
  blocks_.add_chain(context.tokens.subspan(n_kept + 1, n));
  blocks_.add_states(state.states.first(n_rows));
}

// Adds the rows of nodes whose parents have been run, as a block with logits for every row.
void EagleDrafter::add_nodes(const DraftTree& tree, std::span<const int> nodes, State& state) {
  blocks_.begin_block(state.states.sequence());
  blocks_.add_nodes(tree, nodes, state.pending);
  for (const int node : nodes) {
    const auto parent = static_cast<std::size_t>(tree.node(node).parent);
    const auto given = static_cast<std::size_t>(state.pending[parent] + 1);
    blocks_.add_states(std::span<const float>(state.predicted_states).subspan(given * dim_, dim_));
  }
}

void EagleDrafter::run_blocks() {
  head_->forward(blocks_.blocks(), {.logits = blocks_.rows()}, output());
}

void EagleDrafter::run_known(const Context& context, State& state, int n_rows) {
  blocks_.clear();
  add_known(context, state, n_rows);
  run_blocks();
  keep_rows(state, n_rows);
}

void EagleDrafter::keep_rows(State& state, int n_rows) {
  keep_chain(state.states.sequence(), static_cast<std::size_t>(n_rows));
  state.states.drop(n_rows);
}

void EagleDrafter::begin(const Context& context) {
  states_[context.id] = {
      .states = QueuedStates(head_->open({}), dim_), .pending = {}, .predicted_states = {}};
}

// Row i reads token i + 1.
std::size_t EagleDrafter::reusable(SequenceId earlier, std::size_t n_common) const {
  const auto n = static_cast<std::size_t>(states_.at(earlier).states.n_known());
  return std::min(n, n_common - std::min<std::size_t>(n_common, 1));
}

void EagleDrafter::begin_behind(const Context& context, SequenceId earlier, std::size_t n_run) {
  states_[context.id] = {
      .states = states_.at(earlier).states.fork(n_run), .pending = {}, .predicted_states = {}};
}

void EagleDrafter::prefill(const Context& context, std::span<const TokenId> /*tokens*/,
                           const FeatureRows& features) {
  if (!has_room(context.tokens.size())) return;
  State& state = states_.at(context.id);
  add_features(context, state, features, features.n_rows());
}

std::size_t EagleDrafter::n_behind(const Context& context) const {
  const State& state = states_.at(context.id);
  return static_cast<std::size_t>(std::max(state.states.n_queued() - 1, 0));
}

int EagleDrafter::prepare(const DraftJob& job) {
  State& state = states_.at(job.context->id);
  state.pending.clear();
  if (!is_ready(*job.context, state)) return 0;
  // A tree of depth n runs the rows up to the root's and n - 1 further positions.
  return head_->config().context_length - static_cast<int>(job.context->tokens.size()) + 2;
}

// The first level runs the rows of tokens committed since the last draft; the root's is the last.
// Every further level runs its frontier, after the pending rows of the levels before.
LevelwiseDrafter::RowPer EagleDrafter::run_level(int level, std::span<const Growing> drafts) {
  blocks_.clear();
  for (const Growing& draft : drafts) {
    State& state = states_.at(draft.context().id);
    if (level == 0) {
      add_known(draft.context(), state, state.states.n_queued());
      blocks_.ask();
    } else {
      add_nodes(draft.tree(), draft.frontier(), state);
    }
  }
  run_blocks();
  for (std::size_t index = 0; index < drafts.size(); ++index) {
    State& state = states_.at(drafts[index].context().id);
    const int end = blocks_.first_row(index) + blocks_.n_rows_of(index);
    if (level == 0) {
      state.predicted_states.clear();
      state.pending.assign(1, -1);  // the root's row is kept, not pending
      keep_rows(state, blocks_.n_rows_of(index));
    }
    for (int row = level == 0 ? end - 1 : blocks_.first_row(index); row < end; ++row) {
      const std::span<const float> given = output().feature_row(row);
      state.predicted_states.insert(state.predicted_states.end(), given.begin(), given.end());
    }
  }
  return RowPer::node;
}

void EagleDrafter::complete(const Growing& draft) {
  draft.growth->renumber(states_.at(draft.context().id).pending);
}

bool EagleDrafter::run_node(const Context& context, const DraftTree& tree, int node) {
  State& state = states_.at(context.id);
  const auto depth = static_cast<std::size_t>(tree.node(node).depth);
  if (!has_room(context.tokens.size() + depth)) return false;
  if (node == 0 && !is_ready(context, state)) return false;
  blocks_.clear();
  if (node == 0) {  // nothing was drafted
    const int n_rows = state.states.n_queued();
    add_known(context, state, n_rows);
    blocks_.ask();
    run_blocks();
    keep_rows(state, n_rows);
  } else {  // the draft's beginning has been run; only its last token is missing
    add_nodes(tree, {&node, 1}, state);
    run_blocks();
  }
  return true;
}

void EagleDrafter::observe(std::span<const RoundResult> results) {
  for (const RoundResult& result : results) {
    State& state = states_.at(result.context->id);
    state.states.sequence().keep({});  // those rows were computed from predicted states
    state.pending.clear();
    const std::size_t n_tokens = result.context->tokens.size();
    if (!has_room(n_tokens)) {
      state.states.clear();
      continue;
    }
    // The root and the accepted tokens, as far as they were committed. Each now has a token after
    // it, so its row can be run. If earlier features were left out, these are useless.
    const int n_new = static_cast<int>(n_tokens) - 1 - state.states.n_known();
    if (n_new <= result.features.n_rows()) {
      add_features(*result.context, state, result.features, n_new);
    }
  }
}

void EagleDrafter::end(SequenceId id) { states_.erase(id); }

DrafterPlan read_eagle_drafter(const Spec& spec) {
  return {.traits = {.has_draft_prob = true, .prefix_determined = false, .reads_features = true},
          .shape = std::make_shared<FixedShape>(eagle1_tree()),
          .confidence = spec.number("confidence", 0, 1).value_or(0),
          .make = [path = spec.required_value("eagle:PATH"), weights = DrafterWeights::read(spec)](
                      const DrafterMaterials& materials) -> std::unique_ptr<Drafter> {
            auto head = load_eagle_head(path, *materials.target, weights.options(materials.load));
            if (head->mask() == nullptr) return std::make_unique<EagleDrafter>(std::move(head));
            return std::make_unique<ParallelEagleDrafter>(std::move(head));
          }};
}

}  // namespace outrider
