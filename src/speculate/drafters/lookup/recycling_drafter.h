// SPDX-License-Identifier: Apache-2.0
// Token Recycling: drafts the tokens that the target found likely after the same token before.
//
// Source: Luo et al., "Turning Trash into Treasure: Accelerating Inference of Large Language Models
// with Token Recycling" (arXiv:2408.08696). A matrix holds for each token of the vocabulary its k
// likeliest successors, by the last pass of the target that ran it. A draft is a tree grown from
// the text's last token through the matrix, breadth first. Every node of the pass writes its
// token's row, rejected nodes too: results that verification does not use are recycled.
#ifndef OUTRIDER_SPECULATE_DRAFTERS_LOOKUP_RECYCLING_DRAFTER_H_
#define OUTRIDER_SPECULATE_DRAFTERS_LOOKUP_RECYCLING_DRAFTER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "speculate/drafter.h"
#include "speculate/drafters/lookup/candidate_matrix.h"
#include "speculate/drafters/target/target_guesses.h"
#include "speculate/registry/drafter_plan.h"

namespace outrider {

// Every text has its own matrix, initially empty: prompts run without logits, so they write only
// their last token's row. Nodes are point masses. They take the places of the job's shape: the
// child of rank r is candidate r of its parent's row; without a candidate nothing grows. With
// DraftJob::worth, the likeliest paths are drafted first, within the shape's depth and number of
// nodes (for a chain, only the first candidate of each node).
//
// Within a pass, rejected nodes write first, in the order of the tree, then the root and the
// accepted ones, in the order of the text. So the row that is left was found in the text itself, if
// there is one. (The paper leaves this order open.)
//
// The certainty of a token is its share among the candidates of its row, by the logits that were
// written. It is not the target's probability, nor a distribution that the token is drawn from;
// DraftWorth learns its worth. Shapes that use path probabilities (dynamic:) get the product of
// shares.
//
// With `across`, the rows of ended texts are kept for later ones, up to that many; newer rows
// replace older ones. A token without a row in the text's matrix uses such a row. Drafts then
// depend on earlier texts.
class RecyclingDrafter final : public Drafter {
 public:
  static constexpr int kMaxCandidates = 64;  // published trees have ten children a node at most
  static constexpr int kMaxRows = 1 << 20;   // above any vocabulary

  struct Options {
    int n_candidates = 8;  // the paper's k
    // The vocabulary size of the paper's models, so the whole matrix fits: at most six megabytes a
    // text.
    int rows = 32000;
    int across = 0;  // rows of ended texts to keep
  };

  explicit RecyclingDrafter(const Options& options);
  std::string_view name() const override { return "recycling"; }
  DrafterTraits traits() const override { return {}; }
  bool rates_tokens() const override { return true; }
  void begin(const Context& context) override;
  void propose(std::span<DraftJob> jobs) override;
  void observe(std::span<const RoundResult> results) override;
  void end(SequenceId id) override;
  // The matrix keeps its rows.
  void rewind(const Context& /*context*/, std::size_t /*n_common*/) override {}
  std::int64_t n_passes() const override { return 0; }

  // Rows of ended texts that are kept.
  int n_remembered() const { return earlier_.n_rows(); }

 private:
  using Candidate = CandidateMatrix::Candidate;
  // A node that may be drafted next.
  struct Node {
    TokenId token = kNoToken;
    int parent = 0;  // in the tree
    int depth = 1;
    int rank = 0;          // among its siblings
    double prob = 0;       // of its path
    double certainty = 0;  // of the token alone
  };
  // Whether node a is to be drafted after node b.
  static bool is_worse(const Node& a, const Node& b);

  std::span<const Candidate> candidates(const CandidateMatrix& own, TokenId token) const;
  void follow_shape(const DraftJob& job, const CandidateMatrix& own);
  void add_children(const DraftJob& job, int node, std::span<const Candidate> row);
  void grow_what_pays(const DraftJob& job, const CandidateMatrix& own);
  void push_children(const DraftJob& job, const Node& parent, int node,
                     std::span<const Candidate> row);
  void recycle(const RoundResult& result, int node, int n_standing, CandidateMatrix& own);

  Options options_;
  std::unordered_map<SequenceId, CandidateMatrix> texts_;
  CandidateMatrix earlier_;

  // Reused from round to round.
  TargetGuesses guesses_;
  std::vector<Candidate> row_;
  std::vector<int> n_standing_;  // for each node, how many tokens of its path were accepted
  // For a draft that follows a shape, parallel to the tree's nodes; and the nodes that grow or
  // stay.
  std::vector<GrowingNode> nodes_;
  std::vector<int> chosen_;
  std::vector<Node> next_;  // a heap, for a draft by worth
};

// "recycling[:k=K,rows=N,across=ROWS]".
DrafterPlan read_recycling_drafter(const Spec& spec);

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_LOOKUP_RECYCLING_DRAFTER_H_
