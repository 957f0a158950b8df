// Prompt lookup: what followed the last tokens of the text where they stood before.
#ifndef OUTRIDER_SPECULATE_DRAFTERS_NGRAM_DRAFTER_H_
#define OUTRIDER_SPECULATE_DRAFTERS_NGRAM_DRAFTER_H_

#include <cstddef>
#include <string_view>
#include <unordered_map>

#include "speculate/drafter_plan.h"
#include "speculate/drafters/index_drafter.h"
#include "speculate/suffix_automaton.h"

namespace outrider {

// Saxena, "Prompt Lookup Decoding" (2023). Of the n-grams that end the text, n from `longest` down
// to `shortest`, the first that occurs earlier in it decides; `length` tokens behind that
// occurrence are the draft, a chain.
//
// Keeps an index of each text's own tokens, in memory proportional to them; a round costs steps
// proportional to its new tokens, `longest` and `length`, however long the text.
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
  };

  explicit NgramDrafter(const Options& options) : options_(options) {}
  std::string_view name() const override { return "ngram"; }
  bool rates_tokens() const override { return true; }
  void begin(const Context& context) override;
  void propose(std::span<DraftJob> jobs) override;
  void rewind(const Context& context, std::size_t n_common) override;
  void end(SequenceId id) override;

 private:
  Options options_;
  std::unordered_map<SequenceId, SuffixAutomaton> texts_;
};

// "ngram[:min=N,max=N,length=K,match=latest|first]".
DrafterPlan read_ngram_drafter(const Spec& spec);

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_NGRAM_DRAFTER_H_
