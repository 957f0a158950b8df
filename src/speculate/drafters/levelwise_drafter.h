// SPDX-License-Identifier: Apache-2.0
// The base of all drafters by a model: it drafts level by level.
#ifndef OUTRIDER_SPECULATE_DRAFTERS_LEVELWISE_DRAFTER_H_
#define OUTRIDER_SPECULATE_DRAFTERS_LEVELWISE_DRAFTER_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "model/language_model.h"
#include "speculate/drafter.h"
#include "speculate/tree_shapes/tree_growth.h"

namespace outrider {

// A draft takes one pass a level, over the nodes of all texts that the level expands. If shapes mix
// levels, a level is a step that expands nodes of several depths. This class owns the loop: which
// texts draft, how trees grow from logits, when a draft is complete. A subclass keeps the state of
// each text, runs a level, and runs a single node after which verification asks for a distribution.
// Not thread-safe.
class LevelwiseDrafter : public Drafter {
 public:
  ~LevelwiseDrafter() override;

  void propose(std::span<DraftJob> jobs) final;
  bool draft_at(const Context& context, const DraftTree& tree, int node, Distribution& draft_prob,
                Distribution* raw_draft) final;
  std::int64_t n_passes() const final { return n_passes_; }

 protected:
  // A draft under construction. Its frontier, the nodes whose logits are needed, is not empty.
  struct Growing {
    const DraftJob* job;
    TreeGrowth* growth;

    const Context& context() const { return *job->context; }
    const DraftTree& tree() const { return *job->tree; }
    std::span<const int> frontier() const { return growth->frontier(); }
  };
  // What a row of a level's logits belongs to: a node; a draft, whose nodes all have one depth; or,
  // listed, a depth of a draft, as given by list_rows().
  enum class RowPer { node, draft, listed };

  // Only the first n_tokens of each row of logits are drafted: the tokens that both models have.
  explicit LevelwiseDrafter(std::size_t n_tokens = std::numeric_limits<std::size_t>::max());

  // The maximum depth of the text's next draft, whatever the job's shape and budget; 0 or less: no
  // draft this time. Called for every job before anything is run.
  virtual int prepare(const DraftJob& job) = 0;

  // Whether run_level() takes nodes of any depth; if not, those of level n have depth n.
  virtual bool mixes_levels() const { return false; }

  // Writes to output() the logits after the frontiers of these drafts: one row a node, in the order
  // of drafts and nodes or as listed, or one row for all nodes of a draft. At level 0 the frontiers
  // are the roots.
  virtual RowPer run_level(int level, std::span<const Growing> drafts) = 0;

  // Whether a path ends at a node of the frontier. The node gets no children, and with one row a
  // node, run_level leaves no row for it. Called after run_level(). May depend on the node's path,
  // never on the tokens after it, which would bias the draft.
  virtual bool ends_path(const Growing& draft, int node);

  // The drafter's estimate of the log-probability (at most 0) that children of a frontier node are
  // accepted if the node is. It is a factor of these paths' probabilities, for shapes that use
  // them. May depend on the node's path only, as ends_path(). Called after run_level().
  virtual double log_trust(const Growing& draft, int node);

  // Called when a draft is complete and its nodes have their final numbers (TreeGrowth::renumber).
  virtual void complete(const Growing& draft);

  // Writes the logits after one node that run_level has not run to output(), as row 0. Returns
  // false, and runs nothing, if they are not available.
  virtual bool run_node(const Context& context, const DraftTree& tree, int node) = 0;

  std::size_t n_tokens() const { return n_tokens_; }
  ForwardOutput& output() { return output_; }
  // Lists for all nodes of these frontiers the row of output() that row_at(context, depth) returns.
  template <class RowAt>
  RowPer list_rows(std::span<const Growing> drafts, const RowAt& row_at) {
    rows_of_nodes_.clear();
    for (const Growing& draft : drafts) {
      for (const int node : draft.frontier()) {
        rows_of_nodes_.push_back(row_at(draft.context(), draft.tree().node(node).depth));
      }
    }
    return RowPer::listed;
  }
  // Counts passes besides the one of each run_level() and run_node().
  void count_passes(std::int64_t n_passes) { n_passes_ += n_passes; }
  // Keeps the first n_rows pending nodes of a sequence, which must be a chain, and drops the
  // others.
  void keep_chain(Sequence& sequence, std::size_t n_rows);

 private:
  LogitRow logits(int row) const;
  void grow(RowPer row_per);

  std::size_t n_tokens_;
  std::int64_t n_passes_ = 0;

  // Reused from round to round.
  ForwardOutput output_;
  std::vector<std::unique_ptr<TreeGrowth>> growths_;  // one for each job
  std::vector<Growing> growing_;
  std::vector<int> rows_of_nodes_;  // in the order of drafts and nodes
  std::vector<int> path_;
  PenaltyStorage penalties_;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_LEVELWISE_DRAFTER_H_
