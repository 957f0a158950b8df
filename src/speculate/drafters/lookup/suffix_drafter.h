// SPDX-License-Identifier: Apache-2.0
// Drafts what most often followed the end of the text: in the text itself and, optionally, in
// earlier texts.
#ifndef OUTRIDER_SPECULATE_DRAFTERS_LOOKUP_SUFFIX_DRAFTER_H_
#define OUTRIDER_SPECULATE_DRAFTERS_LOOKUP_SUFFIX_DRAFTER_H_

#include <array>
#include <cstddef>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "speculate/drafters/lookup/index_drafter.h"
#include "speculate/drafters/lookup/suffix_automaton.h"
#include "speculate/registry/drafter_plan.h"

namespace outrider {

// Oliaro et al., "SuffixDecoding" (2024), with suffix automata instead of suffix trees. After a
// string that ends the text, the next token's probability is its share of the string's earlier
// continuations; a path's is the product. From each such string a tree of paths with probability
// `cut` or more grows, likeliest paths first. The tree with the largest sum of path probabilities
// (its expected accepted tokens) is the draft. As in the published code a path is at most `factor`
// times as long as its string.
//
// If the job's shape is a chain, only the likeliest child of each node is taken. Trees are a
// function of the text (and of earlier texts), never drawn.
//
// Keeps an index of each text's tokens, with memory proportional to them, and one of at most
// `across` tokens of ended texts. A round costs steps proportional to its new tokens, kOrder, the
// nodes, and the different tokens that have followed a string; not to the length of the text.
class SuffixDrafter final : public IndexDrafter {
 public:
  // The longest strings considered: longer ones hardly ever have other continuations than their
  // ends.
  static constexpr int kOrder = 32;
  // Limit for all earlier texts together: about a gigabyte of index.
  static constexpr int kMaxTokens = 1 << 22;

  struct Options {
    int length = 16;    // of the longest path
    int total = 16;     // nodes of a draft
    double cut = 0.1;   // least probability of a path
    double factor = 4;  // of a path's length to its string's
    int across = 0;     // tokens of earlier texts to keep; the oldest are dropped
  };

  explicit SuffixDrafter(const Options& options);
  std::string_view name() const override { return "suffix"; }
  bool rates_tokens() const override { return true; }
  void begin(const Context& context) override;
  void propose(std::span<DraftJob> jobs) override;
  void rewind(const Context& context, std::size_t n_common) override;
  void end(SequenceId id) override;

  // Tokens of earlier texts that are kept.
  int n_remembered() const;

 private:
  struct IndexedText {
    SuffixAutomaton index{kOrder};
    std::vector<TokenId> tokens;  // only if they are to be kept
  };
  struct Node {
    TokenId token = kNoToken;
    int parent = 0;  // 0: the root; else one more than the parent's index
    int depth = 1;
    double prob = 0;       // of its path
    double certainty = 0;  // of the token alone, for drafts by worth
    SuffixAutomaton::Match match = {};
  };
  struct Growth {
    std::vector<Node> nodes;
    double score = 0;
    Node refused;  // the likeliest that does not pay; no token: none
  };

  void catch_up(IndexedText& text, const Context& context) const;
  void consider(const SuffixAutomaton& index, SuffixAutomaton::Match match, const DraftJob& job);
  void grow(const SuffixAutomaton& index, const SuffixAutomaton::Match& match, const DraftJob& job);
  void push_children(const SuffixAutomaton& index, const Node& node, int place,
                     const DraftJob& job);
  void remember(const std::vector<TokenId>& tokens);

  Options options_;
  std::unordered_map<SequenceId, IndexedText> texts_;
  // Earlier texts by age: when the younger half is full, the older one is dropped.
  std::array<SuffixAutomaton, 2> earlier_ = {SuffixAutomaton(kOrder), SuffixAutomaton(kOrder)};

  // Reused from round to round.
  Growth best_;
  Growth growing_;
  std::vector<Node> candidates_;  // a heap
};

// "suffix[:length=K,total=N,cut=C,factor=F,across=TOKENS]".
DrafterPlan read_suffix_drafter(const Spec& spec);

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_LOOKUP_SUFFIX_DRAFTER_H_
