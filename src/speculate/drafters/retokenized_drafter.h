// A small model of another vocabulary that drafts text: what it writes in its own tokens is cut
// into the target's.
#ifndef OUTRIDER_SPECULATE_DRAFTERS_RETOKENIZED_DRAFTER_H_
#define OUTRIDER_SPECULATE_DRAFTERS_RETOKENIZED_DRAFTER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/vocabulary_translation.h"
#include "model/language_model.h"
#include "speculate/drafter.h"

namespace outrider {

// A draft is a chain of point masses: the model's likeliest tokens one after the other, as text, as
// the target's tokens. Nothing that the model could say is left out, as it is where only shared
// tokens are drafted; but the target's tokens have no distribution, so that it serves greedy
// decoding and rules that need none (Timor et al. 2025, algorithm 2, is the same for sampled text).
//
// The text is read as the model's own tokenizer cuts it. What was drafted is forgotten after the
// round; of the text that has become, only what is cut otherwise than before is run again.
class RetokenizedDrafter final : public Drafter {
 public:
  // Translations from the target to the model and back. Throws Error where they do not fit.
  RetokenizedDrafter(std::unique_ptr<LanguageModel> model, VocabularyTranslation forth,
                     VocabularyTranslation back);

  std::string_view name() const override { return "model"; }
  DrafterTraits traits() const override { return {}; }
  void begin(const Context& context) override;
  void prefill(const Context& context, std::span<const TokenId> tokens,
               const FeatureRows& features) override;
  void propose(std::span<DraftJob> jobs) override;
  void observe(std::span<const RoundResult> /*results*/) override {}
  void end(SequenceId id) override { texts_.erase(id); }
  std::int64_t n_passes() const override { return n_passes_; }

 private:
  struct Text {
    std::unique_ptr<Sequence> sequence;
    TranslatedText text = {};
    std::vector<TokenId> ids = {};  // that the sequence keeps
    std::size_t n_seen = 0;         // of the prompt's tokens
  };
  struct Writing;  // a draft on its way
  // The tokens as the model reads them, but for those that it keeps already.
  std::vector<TokenId> read(Text& text, std::span<const TokenId> tokens) const;
  int room(const Context& context, const Text& text) const;
  void add_draft(DraftJob& job, std::span<const TokenId> written) const;

  std::unique_ptr<LanguageModel> model_;
  VocabularyTranslation forth_;
  VocabularyTranslation back_;
  std::unordered_map<SequenceId, Text> texts_;
  std::int64_t n_passes_ = 0;
  ForwardOutput output_;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_RETOKENIZED_DRAFTER_H_
