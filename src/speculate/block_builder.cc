// SPDX-License-Identifier: Apache-2.0
#include "speculate/block_builder.h"

#include "model/prefill.h"

namespace outrider {

// Allocates for kPrefillRows at once, the widest pass of one text. The number of rows varies from
// round to round, and the largest may come late.
BlockBuilder::BlockBuilder(std::size_t state_width) : state_width_(state_width) {
  tokens_.reserve(kPrefillRows);
  parents_.reserve(kPrefillRows);
  asked_.reserve(kPrefillRows);
}

void BlockBuilder::clear() {
  starts_.clear();
  tokens_.clear();
  parents_.clear();
  states_.clear();
  asked_.clear();
}

void BlockBuilder::begin_block(Sequence& sequence) {
  starts_.push_back({.sequence = &sequence,
                     .row = n_rows(),
                     .parent = static_cast<int>(parents_.size()),
                     .is_chain = false});
}

int BlockBuilder::add(TokenId token, int parent) {
  tokens_.push_back(token);
  parents_.push_back(parent);
  return n_rows() - 1 - starts_.back().row;
}

void BlockBuilder::add_chain(std::span<const TokenId> tokens) {
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  starts_.back().is_chain = true;
}

void BlockBuilder::add_nodes(const DraftTree& tree, std::span<const int> nodes,
                             std::vector<int>& pending) {
  pending.resize(static_cast<std::size_t>(tree.n_nodes()), -1);
  const int n_before = starts_.back().sequence->n_pending();
  for (const int node : nodes) {
    const int parent = pending[static_cast<std::size_t>(tree.node(node).parent)];
    pending[static_cast<std::size_t>(node)] = n_before + add(tree.node(node).token, parent);
    ask();
  }
}

void BlockBuilder::add_states(std::span<const float> states) {
  states_.insert(states_.end(), states.begin(), states.end());
}

std::span<const TokenBlock> BlockBuilder::blocks() {
  blocks_.clear();
  for (std::size_t block = 0; block < starts_.size(); ++block) {
    const Start& start = starts_[block];
    const auto first = static_cast<std::size_t>(start.row);
    const auto n_rows = static_cast<std::size_t>(n_rows_of(block));
    TokenBlock& added = blocks_.emplace_back(
        TokenBlock{.sequence = start.sequence,
                   .tokens = std::span<const TokenId>(tokens_).subspan(first, n_rows),
                   .parents = {}});
    if (!start.is_chain) {
      added.parents =
          std::span<const int>(parents_).subspan(static_cast<std::size_t>(start.parent), n_rows);
    }
    if (state_width_ > 0) {
      added.features =
          std::span<const float>(states_).subspan(first * state_width_, n_rows * state_width_);
    }
  }
  return blocks_;
}

// The kind `listed` serves every pass. The other two save a model the list; and a model that splits
// a text differently (TranslatedModel) needs only the last row of each block.
RowSet BlockBuilder::rows() const {
  if (asked_.empty()) return {.kind = RowSet::Kind::none, .rows = {}};
  if (asks_last_of_each()) return {.kind = RowSet::Kind::last_of_each_block, .rows = {}};
  if (asked_.size() == tokens_.size()) return {.kind = RowSet::Kind::all, .rows = {}};
  return {.kind = RowSet::Kind::listed, .rows = asked_};
}

bool BlockBuilder::asks_last_of_each() const {
  if (asked_.size() != starts_.size()) return false;
  for (std::size_t block = 0; block < starts_.size(); ++block) {
    if (asked_[block] != end_row(block) - 1) return false;
  }
  return true;
}

}  // namespace outrider
