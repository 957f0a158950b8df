// SPDX-License-Identifier: Apache-2.0
// The target without some layers as drafter: its first layers alone, or all but some.
//
// Sources: Elhoushi et al., "LayerSkip: Enabling Early Exit Inference and Self-Speculative
// Decoding" (2024), section 4.3, for an early exit; Zhang et al., "Draft & Verify: Lossless Large
// Language Model Acceleration via Self-Speculative Decoding" (2024) for layers in the middle. In
// both, the shortened model reads keys and values of the whole model. For an early exit these equal
// its own, bit for bit, and this drafter, too, continues from them, round by round. Without layers
// in the middle they differ, and its distribution would depend on where a round began. In that case
// it has its own sequence, run without those layers from the first token on. So its distributions
// are a function of the text in both cases.
#ifndef OUTRIDER_SPECULATE_DRAFTERS_TARGET_LAYERSKIP_DRAFTER_H_
#define OUTRIDER_SPECULATE_DRAFTERS_TARGET_LAYERSKIP_DRAFTER_H_

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "model/language_model.h"
#include "speculate/registry/drafter_plan.h"

namespace outrider {

// A model without some of its layers, with the model's weights and page pool. Only it may run its
// sequences. Feature layers keep their numbers.
class ShortenedModel final : public LanguageModel {
 public:
  // The model must outlive it. skip_layers: ascending, layers of the model.
  ShortenedModel(LanguageModel& model, std::vector<int> skip_layers);

  const ModelConfig& config() const override { return model_->config(); }
  Footprint footprint() const override { return model_->footprint(); }
  std::unique_ptr<Sequence> open(const Prompt& prompt) override { return model_->open(prompt); }
  void encode(Sequence& sequence) override { model_->encode(sequence); }
  int context_of(const Sequence& sequence) const override { return model_->context_of(sequence); }
  bool fits(std::span<const SequenceGrowth> growths) const override {
    return model_->fits(growths);
  }
  void forward(std::span<const TokenBlock> blocks, const ForwardRequest& request,
               ForwardOutput& output) override;
  void embed(std::span<const TokenId> tokens, std::span<float> out) override {
    model_->embed(tokens, out);
  }
  void project(std::span<const float> features, ForwardOutput& output) override {
    model_->project(features, output);
  }
  std::optional<Matrix> narrower_output(WeightKind kind) const override {
    return model_->narrower_output(kind);
  }
  LogitForm logit_form() const override { return model_->logit_form(); }

 private:
  LanguageModel* model_;
  std::vector<int> skip_layers_;
};

// "layerskip:layers=L[,confidence=C]" or "layerskip:skip=I+J+...[,confidence=C]": a ModelDrafter
// over a ShortenedModel.
DrafterPlan read_layerskip_drafter(const Spec& spec);

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_TARGET_LAYERSKIP_DRAFTER_H_
