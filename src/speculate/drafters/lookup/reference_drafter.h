// SPDX-License-Identifier: Apache-2.0
// Copies from given documents: drafts what follows the end of the text there.
#ifndef OUTRIDER_SPECULATE_DRAFTERS_LOOKUP_REFERENCE_DRAFTER_H_
#define OUTRIDER_SPECULATE_DRAFTERS_LOOKUP_REFERENCE_DRAFTER_H_

#include <cstddef>
#include <string_view>
#include <vector>

#include "speculate/drafters/lookup/index_drafter.h"
#include "speculate/drafters/lookup/suffix_automaton.h"
#include "speculate/registry/drafter_plan.h"

namespace outrider {

// Yang et al., "Inference with Reference" (LLMA, 2023). Finds the longest end of the text, of at
// least `shortest` tokens, that a document contains with a token after it; among such occurrences
// the first. The draft, a chain, is the `length` tokens after it; it ends with the document.
//
// The documents' index is built once and serves all texts; nothing is kept of a text. The steps of
// a round are proportional to kLongestContext and `length`, for texts and documents of any length.
// If an occurrence ends its document, the number of different tokens that follow the others is
// added.
class ReferenceDrafter final : public IndexDrafter {
 public:
  // The longest end of the text that is searched. If two places share the last 32 tokens, a longer
  // match hardly makes either continuation likelier.
  static constexpr int kLongestContext = 32;
  // Limit for all documents together: about a gigabyte of index, at some 200 bytes a token.
  static constexpr int kMaxTokens = 1 << 22;

  struct Options {
    int shortest = 2;  // tokens
    int length = 10;
  };

  // Tokens beyond the vocabulary separate documents as their ends do. Throws Error if there are
  // more than kMaxTokens tokens, or none.
  ReferenceDrafter(const std::vector<std::vector<TokenId>>& documents, int vocabulary_size,
                   const Options& options);
  std::string_view name() const override { return "reference"; }
  bool rates_tokens() const override { return true; }
  void propose(std::span<DraftJob> jobs) override;

 private:
  static constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);
  std::size_t continuation(int state) const;

  Options options_;
  std::vector<TokenId> tokens_;  // of all documents, each followed by kNoToken
  SuffixAutomaton index_{0};
};

// "reference:file=F[,file=G,...][,min=N,length=K]"; a folder stands for all files in it.
DrafterPlan read_reference_drafter(const Spec& spec);

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_LOOKUP_REFERENCE_DRAFTER_H_
