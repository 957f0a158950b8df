// SPDX-License-Identifier: Apache-2.0
#include "speculate/drafters/target/jacobi_window.h"

#include <algorithm>
#include <cstddef>

namespace outrider {

int JacobiWindow::max_nodes(const Size& size) {
  int most = 0;
  for (int n_levels = 1; n_levels < size.ngram; ++n_levels) {
    most = std::max(most, (size.width + size.ngram - 1 - n_levels) * n_levels - 1);
  }
  return most;
}

void JacobiWindow::add_to(DraftTree& tree, std::vector<int>& newest) {
  levels_.front().front() = tree.node(0).token;
  newest.assign(1, 0);
  for (std::size_t column = 1; column < levels_.front().size(); ++column) {
    newest.push_back(tree.add_scratch(newest.back(), levels_.front()[column]));
  }
  for (std::size_t level = 1; level < levels_.size(); ++level) {
    for (std::size_t column = 0; column < newest.size(); ++column) {
      newest[column] = tree.add_scratch(newest[column], levels_[level][column]);
    }
  }
}

void JacobiWindow::advance(std::span<const TokenId> results, const TakeNgram& take) {
  if (!full()) {
    // The root has moved by one, so each column's right neighbour now guesses its position.
    for (std::vector<TokenId>& level : levels_) level.erase(level.begin());
    levels_.emplace_back(results.begin() + 1, results.end());
    return;
  }
  std::vector<TokenId> others(levels_.size());
  for (std::size_t column = 0; column < results.size(); ++column) {
    for (std::size_t level = 1; level < levels_.size(); ++level) {
      others[level - 1] = levels_[level][column];
    }
    others.back() = results[column];
    take(levels_.front()[column], others);
  }
  // The levels move up instead of being replaced.
  levels_.erase(levels_.begin());
  levels_.emplace_back(results.begin(), results.end());
}

}  // namespace outrider
