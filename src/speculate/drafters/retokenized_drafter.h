// SPDX-License-Identifier: Apache-2.0
// A small model of another vocabulary that drafts text: its tokens are decoded and tokenised again
// with the target's vocabulary.
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
// the target's tokens. All tokens of the model can be drafted, not only those that both
// vocabularies share. The target's tokens have no distribution, though, so it serves greedy
// decoding and rules that need none. (Timor et al. 2025, algorithm 2, is the same for sampled
// text.)
//
// The model reads the text as its own tokenizer splits it. The draft's tokens are dropped after the
// round; of the new text, only what is split differently than before is run again.
class RetokenizedDrafter final : public Drafter {
 public:
  // Translations from the target to the model and back. Throws Error if they do not fit.
  RetokenizedDrafter(std::unique_ptr<LanguageModel> model, VocabularyTranslation forth,
                     VocabularyTranslation back);

  std::string_view name() const override { return "model"; }
  DrafterTraits traits() const override { return {}; }
  void begin(const Context& context) override;
  void prefill(const Context& context, std::span<const TokenId> tokens,
               const FeatureRows& features) override;
  void propose(std::span<DraftJob> jobs) override;
  void observe(std::span<const RoundResult> /*results*/) override {}
  void end(SequenceId id) override { states_.erase(id); }
  std::int64_t n_passes() const override { return n_passes_; }

 private:
  struct State {
    std::unique_ptr<Sequence> sequence;
    TranslatedText text = {};
    std::vector<TokenId> ids = {};  // that the sequence keeps
    std::size_t n_seen = 0;         // of the prompt's tokens
  };
  struct Writing;  // a draft under construction
  // The tokens in the model's vocabulary, without those that its sequence keeps already.
  std::vector<TokenId> tokens_to_run(State& state, std::span<const TokenId> tokens) const;
  int remaining_context(const Context& context, const State& state) const;
  void add_draft(DraftJob& job, std::span<const TokenId> written) const;

  std::unique_ptr<LanguageModel> model_;
  VocabularyTranslation forth_;
  VocabularyTranslation back_;
  std::unordered_map<SequenceId, State> states_;
  std::int64_t n_passes_ = 0;
  ForwardOutput output_;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_RETOKENIZED_DRAFTER_H_
