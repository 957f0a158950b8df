// A model that has another vocabulary than its user, seen through the user's.
#ifndef OUTRIDER_MODEL_TRANSLATED_MODEL_H_
#define OUTRIDER_MODEL_TRANSLATED_MODEL_H_

#include <memory>
#include <span>

#include "base/vocabulary_translation.h"
#include "model/language_model.h"

namespace outrider {

// Reads tokens of the user's vocabulary and says what it gives to those that it shares: all others
// have a logit of minus infinity, so that behind a softmax the model's law is what it says of the
// shared tokens, renormalised (Timor et al., "Accelerating LLM Inference with Lossless Speculative
// Decoding Algorithms for Heterogeneous Vocabularies", 2025, algorithm 4).
//
// Unlike other models' its logits depend on how the ancestors of a row came. A chain behind the
// kept tokens alone, of which only the last row is asked for or none, is read with all of these as
// the model's own tokenizer cuts their text; what the model had read otherwise of the kept tokens
// is run again. Behind that, and where rows within a block are asked for, every token is read as
// the translation spells it. So the law at a round's root is that of the
// text, but for what it settled long before (TranslatedText), and the laws behind it depend on
// where the round began.
class TranslatedModel final : public LanguageModel {
 public:
  // Throws Error if the translation names rows that the model does not have.
  TranslatedModel(std::unique_ptr<LanguageModel> model, VocabularyTranslation translation);

  // The model's, but for the vocabulary and the ends of a text.
  const ModelConfig& config() const override { return config_; }
  Footprint footprint() const override { return model_->footprint(); }
  std::unique_ptr<Sequence> open(const Prompt& prompt) override;
  // Lends no features; Error if they, or layers to skip, are asked for. Where the model throws, the
  // kept tokens stay, and what it has to read of them it reads again.
  void forward(std::span<const TokenBlock> blocks, const ForwardRequest& request,
               ForwardOutput& output) override;
  int context_of(const Sequence& sequence) const override;
  int room(const Sequence& sequence, std::span<const TokenId> next) const override;

 private:
  class TranslatedSequence;

  void require_known(std::span<const TokenId> tokens) const;
  void catch_up(TranslatedSequence& sequence);
  void give(int n_rows, ForwardOutput& output) const;

  std::unique_ptr<LanguageModel> model_;
  VocabularyTranslation translation_;
  ModelConfig config_;
  ForwardOutput output_;  // the model's, reused
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_TRANSLATED_MODEL_H_
