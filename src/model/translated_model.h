// A model that has another vocabulary than its user, seen through the user's.
#ifndef OUTRIDER_MODEL_TRANSLATED_MODEL_H_
#define OUTRIDER_MODEL_TRANSLATED_MODEL_H_

#include <memory>
#include <span>
#include <vector>

#include "base/vocabulary_translation.h"
#include "model/language_model.h"

namespace outrider {

// Reads tokens of the user's vocabulary and says what it gives to those that it shares: all others
// have a logit of minus infinity, so that behind a softmax the model's law is what it says of the
// shared tokens, renormalised (Timor et al., "Accelerating LLM Inference with Lossless Speculative
// Decoding Algorithms for Heterogeneous Vocabularies", 2025, algorithm 4).
//
// A token is read as the translation spells it, whatever stands before it. What nobody asks a logit
// of, a prompt, is read as the model's own tokenizer cuts it. So what the model says is a function
// of the prompt and of the tokens behind it.
class TranslatedModel final : public LanguageModel {
 public:
  // Throws Error if the translation names rows that the model does not have.
  TranslatedModel(std::unique_ptr<LanguageModel> model, VocabularyTranslation translation);

  // The model's, but for the vocabulary and the ends of a text.
  const ModelConfig& config() const override { return config_; }
  Footprint footprint() const override { return model_->footprint(); }
  std::unique_ptr<Sequence> open(const Prompt& prompt) override;
  // Lends no features; Error if they, or layers to skip, are asked for.
  void forward(std::span<const TokenBlock> blocks, const ForwardRequest& request,
               ForwardOutput& output) override;
  int room(const Sequence& sequence, std::span<const TokenId> next) const override;

 private:
  class TranslatedSequence;
  struct Reading;

  void require_known(std::span<const TokenId> tokens) const;

  std::unique_ptr<LanguageModel> model_;
  VocabularyTranslation translation_;
  ModelConfig config_;
  ForwardOutput output_;  // the model's, reused
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_TRANSLATED_MODEL_H_
