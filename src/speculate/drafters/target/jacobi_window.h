// SPDX-License-Identifier: Apache-2.0
// The window of lookahead decoding: several steps of Jacobi iteration on the text's next tokens,
// run in parallel as scratch nodes of the target's pass.
//
// Source: Fu, Bailis, Stoica, Zhang, "Break the Sequential Dependency of LLM Inference Using
// Lookahead Decoding" (2024), sections 3.1 and 3.2.
//
// The window has N - 1 levels and W columns. Level 0, column 0 is the root of the round. Level j,
// column i is a guess at the token i + j positions after it; level 0 is the oldest. The target's
// tokens after the last level form the next level. The oldest level then leaves, and each column
// gives one N-gram: level 0, level 1, ..., level N - 2 and the target's token after it.
//
// A token must be visible to the tokens of later steps that came from it, and to no others. The
// paper uses an attention mask: level j, column i sees the text, level 0 up to column i, and its
// own column from level 1 on. As ancestors:
//
//   root - c1 - c2 - c3           level 0: a chain, the root its first column
//    |     |    |    |
//    a0    a1   a2   a3           level 1: column i after column i of level 0
//    |     |    |    |
//    b0    b1   b2   b3           level 2
//
// Every row has one such chain, so the mask is already a tree and no row is run twice: W - 1 + W (N
// - 2) nodes.
#ifndef OUTRIDER_SPECULATE_DRAFTERS_TARGET_JACOBI_WINDOW_H_
#define OUTRIDER_SPECULATE_DRAFTERS_TARGET_JACOBI_WINDOW_H_

#include <functional>
#include <span>
#include <vector>

#include "outrider/types.h"
#include "speculate/draft_tree.h"

namespace outrider {

// Levels are added one a step, as in the authors' code: at first there is level 0 alone, with N - 2
// more columns, and each step until the window is full removes one. Not thread-safe.
class JacobiWindow {
 public:
  struct Size {
    int width = 0;  // W >= 1
    int ngram = 0;  // N >= 2
  };
  explicit JacobiWindow(const Size& size) : size_(size) {}

  // The most nodes that it adds to a tree, full or not.
  static int max_nodes(const Size& size);

  // Begins with a level 0 of columns() tokens, one for each column; that of column 0 is unused.
  void start(std::span<const TokenId> tokens) { levels_.assign(1, {tokens.begin(), tokens.end()}); }

  int columns() const { return size_.width + size_.ngram - 1 - n_levels(); }
  bool full() const { return n_levels() == size_.ngram - 1; }
  int depth() const { return columns() + n_levels() - 2; }  // of its deepest node
  int n_nodes() const { return columns() * n_levels() - 1; }

  // Adds the window as scratch nodes. newest[i]: the node of the last level in column i.
  void add_to(DraftTree& tree, std::vector<int>& newest);

  // Advances one step. results[i]: the target's token after newest[i]. A full window calls `take`
  // with the N-grams of the step, column by column: the first token and the N - 1 others (valid
  // during the call).
  using TakeNgram = std::function<void(TokenId first, std::span<const TokenId> others)>;
  void advance(std::span<const TokenId> results, const TakeNgram& take);

  // The last level's tokens; the caller may change those that should not be run.
  std::span<TokenId> newest_tokens() { return levels_.back(); }

 private:
  int n_levels() const { return levels_.empty() ? 1 : static_cast<int>(levels_.size()); }

  Size size_;
  std::vector<std::vector<TokenId>> levels_;  // the oldest first, columns() tokens each
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_TARGET_JACOBI_WINDOW_H_
