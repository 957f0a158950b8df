// SPDX-License-Identifier: Apache-2.0
// Presents a model with another vocabulary in the user's vocabulary.
#ifndef OUTRIDER_MODEL_TRANSLATED_MODEL_H_
#define OUTRIDER_MODEL_TRANSLATED_MODEL_H_

#include <memory>
#include <span>

#include "base/vocabulary_translation.h"
#include "model/language_model.h"

namespace outrider {

// Reads tokens of the user's vocabulary, and returns logits for those that both vocabularies share;
// all others have minus infinity. So after a softmax the distribution is the model's over the
// shared tokens, renormalised (Timor et al., "Accelerating LLM Inference with Lossless Speculative
// Decoding Algorithms for Heterogeneous Vocabularies", 2025, algorithm 4).
//
// Unlike in other models, logits depend on how a row's ancestors were run. A chain directly after
// the kept tokens, with logits of its last row or none, is read as the model's own tokenizer splits
// the whole text; kept tokens that were split differently before are run again. After that, and
// where logits of rows within a block are requested, every token is read as the translation spells
// it. So the distribution at a round's root is that of the text, except for parts that were fixed
// long before (TranslatedText). The distributions after it depend on where the round began.
class TranslatedModel final : public LanguageModel {
 public:
  // Throws Error if the translation names rows that the model does not have.
  TranslatedModel(std::unique_ptr<LanguageModel> model, VocabularyTranslation translation);

  // The model's, except for the vocabulary and the end tokens.
  const ModelConfig& config() const override { return config_; }
  Footprint footprint() const override { return model_->footprint(); }
  std::unique_ptr<Sequence> open(const Prompt& prompt) override;
  // Throws Error if features or skipped layers are requested. If the model throws, the output has
  // no rows. The kept tokens stay; the model runs again what it needs of them.
  void forward(std::span<const TokenBlock> blocks, const ForwardRequest& request,
               ForwardOutput& output) override;
  int context_of(const Sequence& sequence) const override;
  int remaining_context(const Sequence& sequence, std::span<const TokenId> next) const override;

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
