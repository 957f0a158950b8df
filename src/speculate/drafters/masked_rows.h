// SPDX-License-Identifier: Apache-2.0
// The rows of a pass that belong to each draft, where one pass drafts all levels with masks.
#ifndef OUTRIDER_SPECULATE_DRAFTERS_MASKED_ROWS_H_
#define OUTRIDER_SPECULATE_DRAFTERS_MASKED_ROWS_H_

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "speculate/drafter.h"

namespace outrider {

// Level d of a text's draft is drawn from the text's row d: the root's row, then a mask's for each
// further level. Keeps two numbers for each text. Not thread-safe.
class MaskedRows {
 public:
  // Sets and returns the number of levels of a job's draft, at most `max_levels`; n_masks() follows
  // from it.
  int want(const DraftJob& job, int max_levels) {
    const int n = std::min({max_levels, job.budget.depth, job.budget.n_nodes, job.shape->depth()});
    rows_[job.context->id].n = n;
    return n;
  }
  int n_wanted(const Context& context) const { return rows_.at(context.id).n; }
  int n_masks(const Context& context) const { return n_wanted(context) - 1; }

  // The rows of a pass: call start_pass(), then place() in the order of the pass's blocks.
  void start_pass() { n_placed_ = 0; }
  void place(const Context& context) {
    Rows& rows = rows_.at(context.id);
    rows.first = std::exchange(n_placed_, n_placed_ + rows.n);
  }
  int row(const Context& context, int level) const { return rows_.at(context.id).first + level; }

  void forget(SequenceId id) { rows_.erase(id); }

 private:
  struct Rows {
    int n = 0;
    int first = 0;
  };
  std::unordered_map<SequenceId, Rows> rows_;
  int n_placed_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_MASKED_ROWS_H_
