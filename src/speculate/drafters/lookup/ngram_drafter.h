// SPDX-License-Identifier: Apache-2.0
// Prompt lookup: drafts what followed an earlier occurrence of the text's last tokens.
#ifndef OUTRIDER_SPECULATE_DRAFTERS_LOOKUP_NGRAM_DRAFTER_H_
#define OUTRIDER_SPECULATE_DRAFTERS_LOOKUP_NGRAM_DRAFTER_H_

#include <cstddef>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "speculate/drafters/lookup/continuation_table.h"
#include "speculate/drafters/lookup/index_drafter.h"
#include "speculate/drafters/lookup/suffix_automaton.h"
#include "speculate/registry/drafter_plan.h"

namespace outrider {

// Saxena, "Prompt Lookup Decoding" (2023). Tries the n-grams that end the text, n from `longest`
// down to `shortest`; the first that occurs earlier decides. The draft, a chain, is the `length`
// tokens after that occurrence.
//
// With `across`, ended texts leave the continuation of each of their strings of `longest` tokens in
// one table of this many places (continuation_table.h). It is used where the text itself has no
// earlier occurrence: token by token, with drafted tokens as the end of the next string. Drafts
// then depend on earlier texts. Texts that run at the same time see nothing of each other until one
// has ended. (llama.cpp's ngram-mod has such a table; it also reads running texts, and it does not
// distinguish strings that share a place.)
//
// Keeps an index of each text's tokens, with memory proportional to them, and that table. A round
// costs steps proportional to its new tokens, `longest` and `length` (with `across` to the product
// of the two), however long the text.
class NgramDrafter final : public IndexDrafter {
 public:
  // Which of several occurrences to use.
  enum class Occurrence {
    latest,  // if it reaches the text's end, copying continues into the draft itself (as in LZ77)
    first,   // copying ends with the text, as in Hugging Face's prompt lookup
  };
  struct Options {
    int shortest = 1;  // tokens, 1 <= shortest <= longest
    int longest = 3;
    int length = 10;
    Occurrence occurrence = Occurrence::latest;
    int across = 0;  // places for continuations of ended texts; 0: none
  };
  static constexpr int kMaxPlaces = 1 << 24;  // 128 MB; ngram-mod has a quarter as many

  explicit NgramDrafter(const Options& options);
  std::string_view name() const override { return "ngram"; }
  bool rates_tokens() const override { return true; }
  void begin(const Context& context) override;
  void propose(std::span<DraftJob> jobs) override;
  void rewind(const Context& context, std::size_t n_common) override;
  void end(SequenceId id) override;

  // Strings of ended texts whose continuation is stored.
  int n_remembered() const { return earlier_ ? earlier_->n_known() : 0; }

 private:
  struct IndexedText {
    SuffixAutomaton index;
    std::vector<TokenId> tokens;  // only if they are to be stored
  };
  void catch_up(IndexedText& text, const Context& context) const;
  void draft_from_text(const DraftJob& job, const SuffixAutomaton& index, int state) const;
  bool draft_from_earlier(const DraftJob& job);

  Options options_;
  std::unordered_map<SequenceId, IndexedText> texts_;
  std::optional<ContinuationTable> earlier_;
  std::vector<TokenId> end_;  // of a text and its draft; reused from round to round
};

// "ngram[:min=N,max=N,length=K,match=latest|first,across=PLACES]".
DrafterPlan read_ngram_drafter(const Spec& spec);

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_LOOKUP_NGRAM_DRAFTER_H_
