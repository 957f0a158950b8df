// SPDX-License-Identifier: Apache-2.0
// Builds the token blocks of one pass, row by row.
#ifndef OUTRIDER_SPECULATE_BLOCK_BUILDER_H_
#define OUTRIDER_SPECULATE_BLOCK_BUILDER_H_

#include <cstddef>
#include <span>
#include <vector>

#include "model/language_model.h"
#include "outrider/types.h"
#include "speculate/draft_tree.h"

namespace outrider {

// Holds tokens, parents, states and the rows whose logits are requested. blocks() and rows() return
// them as arguments of LanguageModel::forward. Storage is reused from pass to pass. Not
// thread-safe.
//
//   builder.clear();
//   for (each sequence) {
//     builder.begin_block(sequence);
//     for (each token) builder.add(token, parent);
//     builder.ask();
//   }
//   model.forward(builder.blocks(), {.logits = builder.rows()}, output);
class BlockBuilder {
 public:
  // state_width: the number of floats beside each token (TokenBlock::features); 0 for models that
  // read tokens alone.
  explicit BlockBuilder(std::size_t state_width = 0);

  void clear();
  // Begins the block of this sequence; later rows belong to it. At most one block for each
  // sequence.
  void begin_block(Sequence& sequence);

  // Adds a row to the block and returns its number in the block, from 0. parent: as in
  // TokenBlock::parents.
  int add(TokenId token, int parent);
  // Adds a chain after the sequence's last pending node, or after a chain with which the block
  // begins. A block with chains has no other rows.
  void add_chain(std::span<const TokenId> tokens);
  // Adds these nodes of a tree, ascending, and requests the logits of all. pending: for each node
  // of the tree, its pending node in the sequence; -1, or beyond the end: none. The call sets the
  // entries of the added nodes. A child of a node without a pending node follows the last kept
  // token.
  void add_nodes(const DraftTree& tree, std::span<const int> nodes, std::vector<int>& pending);
  // The states (n, state_width) of the next rows, in the order of the rows. Every row needs one
  // before blocks() is called.
  void add_states(std::span<const float> states);

  // Requests the logits of the row added last.
  void ask() { asked_.push_back(n_rows() - 1); }
  // Requests those of the last n rows.
  void ask_last(int n) {
    for (int row = n_rows() - n; row < n_rows(); ++row) asked_.push_back(row);
  }

  // Both are valid until the builder is changed.
  std::span<const TokenBlock> blocks();
  RowSet rows() const;

  int n_rows() const { return static_cast<int>(tokens_.size()); }
  // The row of the pass with which a block begins; blocks are numbered from 0.
  int first_row(std::size_t block) const { return starts_[block].row; }
  int n_rows_of(std::size_t block) const { return end_row(block) - first_row(block); }

 private:
  struct Start {
    Sequence* sequence;
    int row;     // of the pass
    int parent;  // index into parents_; unused for a chain
    bool is_chain;
  };
  int end_row(std::size_t block) const {
    return block + 1 < starts_.size() ? starts_[block + 1].row : n_rows();
  }
  bool asks_last_of_each() const;

  std::size_t state_width_;
  std::vector<Start> starts_;  // of each block
  std::vector<TokenId> tokens_;
  std::vector<int> parents_;
  std::vector<float> states_;
  std::vector<int> asked_;
  std::vector<TokenBlock> blocks_;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_BLOCK_BUILDER_H_
