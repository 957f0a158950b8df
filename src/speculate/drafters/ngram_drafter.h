// Prompt lookup: what followed the last tokens of the text where they stood before.
#ifndef OUTRIDER_SPECULATE_DRAFTERS_NGRAM_DRAFTER_H_
#define OUTRIDER_SPECULATE_DRAFTERS_NGRAM_DRAFTER_H_

#include <cstddef>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "speculate/drafter_plan.h"
#include "speculate/drafters/continuation_table.h"
#include "speculate/drafters/index_drafter.h"
#include "speculate/suffix_automaton.h"

namespace outrider {

// Saxena, "Prompt Lookup Decoding" (2023). Of the n-grams that end the text, n from `longest` down
// to `shortest`, the first that occurs earlier in it decides; `length` tokens behind that
// occurrence are the draft, a chain.
//
// With `across`, ended texts leave what followed each of their strings of `longest` tokens, in one
// table of so many places for all (continuation_table.h). It is asked where the text itself has no
// such string earlier: for one token after the other, the drafted ones being the end of the next
// string. What is drafted then depends on the texts before. Texts that run side by side see nothing
// of each other until one has ended. (The table of llama.cpp's ngram-mod, which hears of texts
// while they run and tells no strings of one place apart.)
//
// Keeps an index of each text's own tokens, in memory proportional to them, and that table; a round
// costs steps proportional to its new tokens, `longest` and `length` (with `across` to the product
// of the two), however long the text.
class NgramDrafter final : public IndexDrafter {
 public:
  // Which of several occurrences.
  enum class Occurrence {
    latest,  // where it reaches the text's end, copying goes on into the draft itself (as in LZ77)
    first,   // copying ends with the text: the choice of Hugging Face's prompt lookup
  };
  struct Options {
    int shortest = 1;  // tokens, 1 <= shortest <= longest
    int longest = 3;
    int length = 10;
    Occurrence occurrence = Occurrence::latest;
    int across = 0;  // places for what ended texts have shown; 0: nothing is remembered
  };
  static constexpr int kMostPlaces = 1 << 24;  // 128 MB; ngram-mod has a quarter as many

  explicit NgramDrafter(const Options& options);
  std::string_view name() const override { return "ngram"; }
  bool rates_tokens() const override { return true; }
  void begin(const Context& context) override;
  void propose(std::span<DraftJob> jobs) override;
  void rewind(const Context& context, std::size_t n_common) override;
  void end(SequenceId id) override;

  // Strings of ended texts whose continuation is remembered.
  int n_remembered() const { return earlier_ ? earlier_->n_known() : 0; }

 private:
  struct Text {
    SuffixAutomaton index;
    std::vector<TokenId> tokens;  // kept where they are to be remembered
  };
  void catch_up(Text& text, const Context& context) const;
  void draft_from_text(const DraftJob& job, const SuffixAutomaton& index, int state) const;
  bool draft_from_earlier(const DraftJob& job);

  Options options_;
  std::unordered_map<SequenceId, Text> texts_;
  std::optional<ContinuationTable> earlier_;
  std::vector<TokenId> end_;  // of a text and its draft; reused from round to round
};

// "ngram[:min=N,max=N,length=K,match=latest|first,across=PLACES]".
DrafterPlan read_ngram_drafter(const Spec& spec);

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_NGRAM_DRAFTER_H_
