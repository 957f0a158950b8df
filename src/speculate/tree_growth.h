// How a drafter with distributions grows a draft: level by level, in the shape that its job asks
// for. Whatever gives the logits (a small model, a head on the target's features), the children
// come from here.
#ifndef OUTRIDER_SPECULATE_TREE_GROWTH_H_
#define OUTRIDER_SPECULATE_TREE_GROWTH_H_

#include <span>
#include <vector>

#include "sampling/distribution.h"
#include "sampling/raw_probs.h"
#include "speculate/drafter.h"
#include "speculate/tree_shape.h"

namespace outrider {

// What penalties on a drafter's row need; reused from node to node.
struct PenaltyStorage {
  std::vector<TokenId> path;
  std::vector<TokenLogit> replaced;
};

// The drafter's distributions behind a node from its logits there, under the request's transform,
// whose penalties count the committed tokens and the node's own path: what Drafter::draft_at() is
// asked for. raw_draft may be null.
void distributions_at(const Context& context, const DraftTree& tree, int node, LogitRow logits,
                      PenaltyStorage& storage, Distribution& draft_prob, Distribution* raw_draft);

// One draft on its way. Reused from draft to draft. Not thread-safe.
//
//   growth.start(job, depth);
//   while (!growth.frontier().empty()) {
//     for (int node : growth.frontier()) growth.expand(node, logits_behind(node));
//     growth.next_level();
//   }
//
// Children of a node are proposed in one of these ways:
// - sampled from the drafter's distribution under the request's transform, with or without
//   replacement. Node n is drawn with Purpose::draft and key n. Under DraftNoise::coupled the first
//   child takes the Gumbel noise that plain sampling would use at its position; drawn without
//   replacement with that same noise, its siblings are the tokens of the next largest
//   noise-perturbed log-probabilities, which is how that law is drawn in one go (Kool, van Hoof,
//   Welling, "Stochastic Beams and Where to Find Them", 2019).
// - as the likeliest tokens, point masses, where the shape says so; and always where the transform
//   is greedy, for it leaves one token alone. They are ranked by the distribution under the
//   transform, or under a greedy one by the raw distribution.
class TreeGrowth {
 public:
  // The job's tree holds the root alone; the job outlives the growth. No node will be deeper than
  // `depth`, the job's budget or the shape's own depth. may_mix: the drafter can expand nodes of
  // several levels at once, if the shape asks for it.
  void start(const DraftJob& job, int depth, bool may_mix = false);

  // The nodes whose logits are wanted next, ascending. Empty: the draft is complete.
  std::span<const int> frontier() const { return frontier_; }

  // Whether the shape looks at how likely paths are, and so at log_trust.
  bool uses_log_prob() const { return job_->shape->uses_log_prob(); }

  // Proposes the children of a node of the frontier. `logits` are the drafter's own behind that
  // node, before penalties; those beyond the tokens that the target knows are left out. log_trust:
  // a factor of the probability of all paths through the children, as a logarithm, at most 0.
  // same_at_depth: the logits are the same behind all nodes of this depth. Point masses then take
  // them from the first of these nodes, where penalties do not tell paths apart.
  void expand(int node, LogitRow logits, double log_trust = 0, bool same_at_depth = false);

  // To be called when the whole frontier has been expanded.
  void next_level();

  // To be called of a complete draft, whose nodes may have new numbers since some did not stay: a
  // drafter's numbers by node, in the order in which the nodes grew, become those of the nodes that
  // stayed. Nodes that `by_node` is too short for get -1.
  void renumber(std::vector<int>& by_node) const;

 private:
  void sample(int node, int law, TreeShape::Children children);
  // The likeliest tokens behind a node.
  struct Ranks {
    struct Ranked {
      TokenId token = kNoToken;
      double log_prob = 0;  // if the shape uses it
      double raw_prob = 0;  // if there is a stop rule
    };
    int law = kNoDistribution;  // none: nothing is known
    int raw_draft = kNoDistribution;
    int count = 0;  // of the tokens that were asked for
    std::vector<Ranked> tokens;
  };
  int show_laws(int node, LogitRow logits);
  void rank(int node, int law, int count, LogitRow logits, Ranks& ranks);
  void take_top_ranks(int node, const Ranks& ranks, TreeShape::Children children, double log_trust);
  void add(int node, int proposal, Draws draws, TokenId token, double raw_prob, int place);
  void raise_floor();
  void finish();
  double raw_prob(int law, TokenId token) const;

  const DraftJob* job_ = nullptr;
  int depth_ = 0;  // of the deepest nodes allowed
  int level_ = 0;  // depth of the nodes in the frontier, unless it mixes them
  bool mixes_levels_ = false;
  int n_grown_ = 0;
  double floor_ = 0;                // children of a lower log_prob could not stay
  bool needs_raw_ = false;          // the raw distribution of each node
  bool needs_raw_prob_ = false;     // that of the tokens that are drafted
  std::vector<GrowingNode> nodes_;  // parallel to the tree's
  std::vector<double> log_probs_;
  std::vector<int> frontier_;
  std::vector<int> origins_;  // of a complete draft: what each node's number was while it grew

  PenaltyStorage penalties_;
  // By depth, where logits are the same at one; else the first alone, of the node in hand.
  std::vector<Ranks> ranks_;
  std::vector<TokenId> tokens_;
  Distribution raw_;    // where needs_raw_
  RawProbs raw_probs_;  // of the node that is expanded
  Distribution left_;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_TREE_GROWTH_H_
