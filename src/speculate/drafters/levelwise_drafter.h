// Drafting level by level: the part that all drafters by a model share, whatever the model is.
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
#include "speculate/tree_growth.h"

namespace outrider {

// A draft takes one pass a level, over the nodes of all texts that the level expands. Where shapes
// mix levels, a level is a step that expands nodes of several depths. This class owns the loop:
// which texts draft, how trees grow from logits, when a draft is complete. A subclass keeps what it
// knows of each text, runs a level, and runs a single node behind which verification asks for a
// distribution. Not thread-safe.
class LevelwiseDrafter : public Drafter {
 public:
  ~LevelwiseDrafter() override;

  void propose(std::span<DraftJob> jobs) final;
  bool draft_at(const Context& context, const DraftTree& tree, int node, Distribution& draft_prob,
                Distribution* raw_draft) final;
  std::int64_t n_passes() const final { return n_passes_; }

 protected:
  // A draft on its way. Its frontier, the nodes whose logits are wanted, is not empty.
  struct Growing {
    const DraftJob* job;
    TreeGrowth* growth;

    const Context& context() const { return *job->context; }
    const DraftTree& tree() const { return *job->tree; }
    std::span<const int> frontier() const { return growth->frontier(); }
  };
  // What a row of logits of a level belongs to: a node; a draft, whose nodes all have one depth;
  // or, listed, a depth of a draft: list_rows() says where.
  enum class RowPer { node, draft, listed };

  // Of each row of logits the first n_tokens are drafted from: the tokens that both models know.
  explicit LevelwiseDrafter(std::size_t n_tokens = std::numeric_limits<std::size_t>::max());

  // How deep a text's next draft may be, whatever the job's shape and budget; 0 or less: the text
  // drafts nothing this time. Called for every job before anything is run.
  virtual int prepare(const DraftJob& job) = 0;

  // Whether run_level() takes nodes of any depth: where not, those of level n have depth n.
  virtual bool mixes_levels() const { return false; }

  // Leaves in output() the logits behind the frontiers of these drafts: a row a node, in the order
  // of drafts and nodes or as listed, or one row for all nodes of a draft. Level 0 has the roots as
  // frontiers.
  virtual RowPer run_level(int level, std::span<const Growing> drafts) = 0;

  // Whether a path ends at a node of the frontier: it gets no children, and run_level leaves no row
  // for it where there is one a node. Asked behind run_level(). May look at the node's path, never
  // at what would follow it: the draft would be biased.
  virtual bool ends_path(const Growing& draft, int node);

  // The drafter's own estimate of the probability that what it drafts behind a node of the frontier
  // stands if that node does, as a logarithm, at most 0: a factor of these paths' probabilities for
  // shapes that go by them. May look at the node's path, as ends_path() may. Asked behind
  // run_level().
  virtual double log_trust(const Growing& draft, int node);

  // A draft is complete and its tree's nodes have their final numbers (TreeGrowth::renumber).
  virtual void complete(const Growing& draft);

  // Leaves the logits behind one node that run_level has not run in output(), as row 0. false,
  // with nothing run, where there are none to be had.
  virtual bool run_node(const Context& context, const DraftTree& tree, int node) = 0;

  std::size_t n_tokens() const { return n_tokens_; }
  ForwardOutput& output() { return output_; }
  // Of all nodes of these frontiers, the row of output() that row_at(context, depth) names.
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
  // Counts passes beside the one of each run_level() and run_node().
  void count_passes(std::int64_t n_passes) { n_passes_ += n_passes; }
  // Keeps the first n_rows pending nodes of a sequence, which are a chain, and drops the others.
  void keep_chain(Sequence& sequence, std::size_t n_rows);

 private:
  LogitRow logits(int row) const;
  void grow(RowPer row_per);

  std::size_t n_tokens_;
  std::int64_t n_passes_ = 0;

  // Reused from round to round.
  ForwardOutput output_;
  std::vector<std::unique_ptr<TreeGrowth>> growths_;  // one a job
  std::vector<Growing> growing_;
  std::vector<int> rows_of_nodes_;  // in the order of drafts and nodes
  std::vector<int> path_;
  PenaltyStorage penalties_;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_LEVELWISE_DRAFTER_H_
