// Token Recycling: what the target found likely behind a token is what may follow it next time.
//
// Source: Luo et al., "Turning Trash into Treasure: Accelerating Inference of Large Language Models
// with Token Recycling" (arXiv:2408.08696). A matrix holds for each token of the vocabulary the k
// likeliest tokens behind it, by the last pass of the target that ran it. A draft is a tree that is
// grown from the text's last token through the matrix, breadth first. Every node of the pass writes
// its token's row, those that did not stand as well: what verification has no use for is recycled.
#ifndef OUTRIDER_SPECULATE_DRAFTERS_RECYCLING_DRAFTER_H_
#define OUTRIDER_SPECULATE_DRAFTERS_RECYCLING_DRAFTER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "speculate/drafter.h"
#include "speculate/drafter_plan.h"
#include "speculate/drafters/candidate_matrix.h"
#include "speculate/drafters/target_guesses.h"

namespace outrider {

// Every text has a matrix of its own, empty when it begins: prompts are run without logits, so that
// they write no row but their last token's. Nodes are point masses. They take the places of the
// job's shape: the child of rank r is candidate r of its parent's row, and where the row has none,
// nothing grows. Where the draft goes by what it is worth, the likeliest paths are drafted first,
// within the shape's depth and number of nodes (and of each node the first candidate alone, if it
// is a chain).
//
// Of one pass the nodes that did not stand write first, in the order of the tree, then the root and
// those that stood, in the order of the text: the newest of a token's rows is the one that was
// found behind the text itself, if any was. (The paper leaves open which of them stays.)
//
// How sure it is of a token is the token's share among the candidates of its row, by the logits
// that were written. That is no probability of the target's, let alone a law that the token is
// drawn from: what it is worth is for DraftWorth to learn. Shapes that go by the probability of
// paths (dynamic:) go by the product of shares.
//
// With `across`, the rows of a text that ends are kept for later ones, up to that many, the newest
// in place of older ones. A token that has no row of the text's own takes such a row. What is
// drafted then depends on what was written before.
class RecyclingDrafter final : public Drafter {
 public:
  static constexpr int kMostCandidates = 64;  // published trees have ten children a node at most
  static constexpr int kMostRows = 1 << 20;   // above any vocabulary

  struct Options {
    int n_candidates = 8;  // the paper's k
    // The vocabulary of the paper's models, whose matrix is whole: six megabytes a text at most.
    int rows = 32000;
    int across = 0;  // rows of ended texts to remember
  };

  explicit RecyclingDrafter(const Options& options);
  std::string_view name() const override { return "recycling"; }
  DrafterTraits traits() const override { return {}; }
  bool rates_tokens() const override { return true; }
  void begin(const Context& context) override;
  void propose(std::span<DraftJob> jobs) override;
  void observe(std::span<const RoundResult> results) override;
  void end(SequenceId id) override;
  // What was found stays found.
  void rewind(const Context& /*context*/, std::size_t /*n_common*/) override {}
  std::int64_t n_passes() const override { return 0; }

  // Rows of ended texts that are remembered.
  int n_remembered() const { return earlier_.n_rows(); }

 private:
  using Candidate = CandidateMatrix::Candidate;
  // One that may be drafted next.
  struct Node {
    TokenId token = kNoToken;
    int parent = 0;  // in the tree
    int depth = 1;
    int rank = 0;          // among its siblings
    double prob = 0;       // of its path
    double certainty = 0;  // of it alone
  };
  // Whether a node is to be drafted behind another.
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
  std::vector<int> n_standing_;  // of a node's path, how many tokens stand
  // Of a draft that follows a shape, parallel to the tree's nodes; and of which some grow or stay.
  std::vector<GrowingNode> nodes_;
  std::vector<int> chosen_;
  std::vector<Node> next_;  // of a draft that pays, a heap
};

// "recycling[:k=K,rows=N,across=ROWS]".
DrafterPlan read_recycling_drafter(const Spec& spec);

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_RECYCLING_DRAFTER_H_
