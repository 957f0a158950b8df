// SPDX-License-Identifier: Apache-2.0
// Drafts looked up in a datastore of text (REST: He, Zhong, Cai, Lee and He, 2024, "REST:
// Retrieval-Based Speculative Decoding", arXiv:2311.08252).
#ifndef OUTRIDER_SPECULATE_DRAFTERS_LOOKUP_RETRIEVAL_DRAFTER_H_
#define OUTRIDER_SPECULATE_DRAFTERS_LOOKUP_RETRIEVAL_DRAFTER_H_

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "io/datastore.h"
#include "speculate/drafters/lookup/index_drafter.h"
#include "speculate/registry/drafter_plan.h"

namespace outrider {

// Searches the store for the text's last tokens: the longest run of 16 down to 2 that occurs there.
// The continuations of its occurrences form a tree in which a node counts the occurrences through
// it. The nodes with the largest counts are drafted as point masses, parents first; among equals
// the shallower, then the path with the lower ids. For a chain, the best child of the best child is
// taken.
//
// Of N > kMaxMatches occurrences, in the order of segment and rank, kMaxMatches are read: numbers
// floor((2j + 1) N / (2 kMaxMatches)), j = 0, 1, ... Occurrences with the same continuation are
// adjacent in a segment. So the sample keeps each continuation's share in a segment, rounded up or
// down. A continuation that is missed has less than 1 / kMaxMatches of all occurrences in any
// segment, and would be accepted about as rarely.
//
// No state for a text: a draft is a function of the last 16 tokens, the shape and the budget.
class RetrievalDrafter final : public IndexDrafter {
 public:
  static constexpr int kShortestPattern = 2;
  // Each costs about two cache misses, so a thousand cost about a tenth of a millisecond; REST
  // reads 5000.
  static constexpr std::uint64_t kMaxMatches = 1024;
  // REST's tree.
  static constexpr int kDepth = 10;
  static constexpr int kNodes = 64;

  // Tokens of `vocabulary_size` and above are never drafted.
  RetrievalDrafter(Datastore store, int vocabulary_size);

  std::string_view name() const override { return "retrieval"; }
  void propose(std::span<DraftJob> jobs) override;

 private:
  // An occurrence, as the position after it.
  struct Match {
    int segment = 0;
    std::uint64_t place = 0;
  };
  // A node that may be drafted next: matches_[first, first + count) continue with its token.
  struct Candidate {
    std::size_t first = 0;
    std::size_t count = 0;
    TokenId token = kNoToken;
    int parent = 0;  // in the tree
    int depth = 0;
  };

  bool occurs(std::span<const TokenId> pattern) const;
  void find_matches(std::span<const TokenId> tokens);
  void add_children(const Candidate& candidate, int node);
  void grow(DraftTree& tree, int depth, int n_nodes, bool is_chain);

  Datastore store_;
  TokenId vocabulary_size_;

  // Reused from draft to draft.
  std::vector<Datastore::Ranks> ranks_;  // by segment
  std::vector<Match> matches_;
  std::vector<std::pair<TokenId, Match>> next_;
  std::vector<Candidate> candidates_;  // a heap
};

// "retrieval:path=FILE".
DrafterPlan read_retrieval_drafter(const Spec& spec);

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_LOOKUP_RETRIEVAL_DRAFTER_H_
