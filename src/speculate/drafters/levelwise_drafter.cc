// SPDX-License-Identifier: Apache-2.0
#include "speculate/drafters/levelwise_drafter.h"

#include <algorithm>
#include <numeric>

#include "model/prefill.h"

namespace outrider {

LevelwiseDrafter::LevelwiseDrafter(std::size_t n_tokens) : n_tokens_(n_tokens) {
  path_.reserve(kPrefillRows);  // the longest chain of one pass; it may come late
}
LevelwiseDrafter::~LevelwiseDrafter() = default;

void LevelwiseDrafter::propose(std::span<DraftJob> jobs) {
  growing_.clear();
  while (growths_.size() < jobs.size()) growths_.push_back(std::make_unique<TreeGrowth>());
  for (std::size_t index = 0; index < jobs.size(); ++index) {
    const int depth = prepare(jobs[index]);
    if (depth <= 0) continue;
    TreeGrowth& growth = *growths_[index];
    growth.start(jobs[index], depth, mixes_levels());
    if (!growth.frontier().empty()) growing_.push_back({.job = &jobs[index], .growth = &growth});
  }
  for (int level = 0; !growing_.empty(); ++level) {
    const RowPer row_per = run_level(level, growing_);
    ++n_passes_;
    grow(row_per);
    std::erase_if(growing_, [this](const Growing& draft) {
      if (!draft.frontier().empty()) return false;
      complete(draft);
      return true;
    });
  }
}

// Adds the children of all frontiers from the rows of the level's pass.
void LevelwiseDrafter::grow(RowPer row_per) {
  int row = 0;
  std::size_t listed = 0;
  for (const Growing& draft : growing_) {
    for (const int node : draft.frontier()) {
      if (row_per == RowPer::listed) row = rows_of_nodes_[listed++];
      if (ends_path(draft, node)) continue;
      const double trust = draft.growth->uses_log_prob() ? log_trust(draft, node) : 0;
      draft.growth->expand(node, logits(row), trust, row_per != RowPer::node);
      if (row_per == RowPer::node) ++row;
    }
    if (row_per == RowPer::draft) ++row;
    draft.growth->next_level();
  }
}

bool LevelwiseDrafter::ends_path(const Growing& /*draft*/, int /*node*/) { return false; }

double LevelwiseDrafter::log_trust(const Growing& /*draft*/, int /*node*/) { return 0; }

void LevelwiseDrafter::complete(const Growing& /*draft*/) {}

bool LevelwiseDrafter::draft_at(const Context& context, const DraftTree& tree, int node,
                                Distribution& draft_prob, Distribution* raw_draft) {
  if (!run_node(context, tree, node)) return false;
  ++n_passes_;
  distributions_at(context, tree, node, logits(0), penalties_, draft_prob, raw_draft);
  return true;
}

LogitRow LevelwiseDrafter::logits(int row) const {
  return output_.logits.row(row).first(n_tokens_);
}

void LevelwiseDrafter::keep_chain(Sequence& sequence, std::size_t n_rows) {
  path_.resize(n_rows);
  std::iota(path_.begin(), path_.end(), 0);
  sequence.keep(path_);
}

}  // namespace outrider
