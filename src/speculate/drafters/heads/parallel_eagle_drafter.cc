// SPDX-License-Identifier: Apache-2.0
#include "speculate/drafters/heads/parallel_eagle_drafter.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "model/prefill.h"

namespace outrider {

ParallelEagleDrafter::ParallelEagleDrafter(std::unique_ptr<FeatureHead> head)
    : EagleDrafter(std::move(head)) {
  const FeatureHead::Mask& mask = *this->head().mask();
  masks_.assign(kMaxDraftNodes, mask.token);
  for (int i = 0; i < kMaxDraftNodes; ++i) {
    states_.insert(states_.end(), mask.state.begin(), mask.state.end());
  }
}
ParallelEagleDrafter::~ParallelEagleDrafter() = default;

int ParallelEagleDrafter::prepare(const DraftJob& job) {
  return rows_.want(job, EagleDrafter::prepare(job));
}

// No pass is wider than one of prefill. If the masks and the known rows exceed that, the known rows
// but the root's run in passes before.
void ParallelEagleDrafter::catch_up(const Context& context, State& state, int n_masks) {
  const int n_known = state.states.n_queued();
  if (n_known + n_masks <= kPrefillRows) return;
  run_known(context, state, n_known - 1);
  count_passes(1);
}

// Adds the known rows and the masks after them.
void ParallelEagleDrafter::add_block(const Context& context, const State& state, int n_masks) {
  const auto n = static_cast<std::size_t>(n_masks);
  const std::size_t dim = states_.size() / masks_.size();
  add_known(context, state, state.states.n_queued());
  blocks().add_chain(std::span<const TokenId>(masks_).first(n));
  blocks().add_states(std::span<const float>(states_).first(n * dim));
}

void ParallelEagleDrafter::run_masked() {
  run_blocks();
  output().logits.forbid(masks_.front());
}

// The first level runs the drafts; the others look up their rows, without a pass.
LevelwiseDrafter::RowPer ParallelEagleDrafter::run_level(int level,
                                                         std::span<const Growing> drafts) {
  if (level == 0) {
    for (const Growing& draft : drafts) {
      const Context& context = draft.context();
      catch_up(context, state_of(context), rows_.n_masks(context));
    }
    blocks().clear();
    rows_.start_pass();
    for (const Growing& draft : drafts) {
      const Context& context = draft.context();
      add_block(context, state_of(context), rows_.n_masks(context));
      blocks().ask_last(rows_.n_wanted(context));
      rows_.place(context);
    }
    run_masked();
    for (std::size_t index = 0; index < drafts.size(); ++index) {
      const Context& context = drafts[index].context();
      keep_rows(state_of(context), blocks().n_rows_of(index) - rows_.n_masks(context));
    }
  } else {
    count_passes(-1);
  }
  return list_rows(drafts,
                   [this](const Context& context, int depth) { return rows_.row(context, depth); });
}

// Runs masks again, after the draft's own tokens, up to the node's place.
bool ParallelEagleDrafter::run_node(const Context& context, const DraftTree& tree, int node) {
  State& state = state_of(context);
  const std::size_t n_tokens = context.tokens.size();
  const int n_masks = tree.node(node).depth;
  const int n_known = state.states.n_known();
  if (n_known == 0 || n_known + 1 != static_cast<int>(n_tokens)) return false;
  if (!has_room(n_tokens + static_cast<std::size_t>(n_masks))) return false;
  if (state.states.n_queued() + n_masks == 0) return false;
  catch_up(context, state, n_masks);
  const int n_queued = state.states.n_queued();
  blocks().clear();
  add_block(context, state, n_masks);
  blocks().ask();
  run_masked();
  keep_rows(state, n_queued);
  return true;
}

void ParallelEagleDrafter::end(SequenceId id) {
  rows_.forget(id);
  EagleDrafter::end(id);
}

}  // namespace outrider
