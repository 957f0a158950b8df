// Copies from given documents: what follows there where they contain the end of the text.
#ifndef OUTRIDER_SPECULATE_DRAFTERS_REFERENCE_DRAFTER_H_
#define OUTRIDER_SPECULATE_DRAFTERS_REFERENCE_DRAFTER_H_

#include <cstddef>
#include <string_view>
#include <vector>

#include "speculate/drafter_plan.h"
#include "speculate/drafters/index_drafter.h"
#include "speculate/suffix_automaton.h"

namespace outrider {

// Yang et al., "Inference with Reference" (LLMA, 2023). The longest end of the text, of `shortest`
// tokens or more, that a document contains with anything behind it decides; of such occurrences the
// first. `length` tokens behind it are the draft, a chain; it ends with the
// document.
//
// The documents' index is made once and serves all texts, of which nothing is kept. A round costs
// steps proportional to kLongestContext and `length`, however long texts and documents are (and,
// where an occurrence ends its document, to the different tokens that follow others).
class ReferenceDrafter final : public IndexDrafter {
 public:
  // How much of the text is looked for. Of two places that have the last 32 tokens in common, the
  // one that agrees with more before them is hardly the likelier to go on alike.
  static constexpr int kLongestContext = 32;
  // What all documents may have together: about a gigabyte of index, at some 200 bytes a token.
  static constexpr int kMostTokens = 1 << 22;

  struct Options {
    int shortest = 2;  // tokens
    int length = 10;
  };

  // Tokens beyond the vocabulary divide a document as its end does. Throws Error if there are more
  // than kMostTokens, or none.
  ReferenceDrafter(const std::vector<std::vector<TokenId>>& documents, int vocabulary_size,
                   const Options& options);
  std::string_view name() const override { return "reference"; }
  bool rates_tokens() const override { return true; }
  void propose(std::span<DraftJob> jobs) override;

 private:
  static constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);
  std::size_t continuation(int state) const;

  Options options_;
  std::vector<TokenId> tokens_;  // of all documents, kNoToken behind each
  SuffixAutomaton index_{0};
};

// "reference:file=F[,file=G,...][,min=N,length=K]"; a folder stands for all files in it.
DrafterPlan read_reference_drafter(const Spec& spec);

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_REFERENCE_DRAFTER_H_
