// SPDX-License-Identifier: Apache-2.0
// The frozen target of a training run, run by the engine. Probabilities and features are computed
// when needed; none are stored.
#ifndef OUTRIDER_TRAIN_TEACHER_H_
#define OUTRIDER_TRAIN_TEACHER_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "model/language_model.h"
#include "outrider/types.h"

namespace outrider::train {

// Not thread-safe.
class Teacher {
 public:
  // path: a Hugging Face directory or a .gguf file; its weights are used as stored. Throws Error.
  Teacher(const std::filesystem::path& path, int n_threads);

  const ModelConfig& config() const { return model_->config(); }
  LanguageModel& model() { return *model_; }

  // Runs whole sequences, each from its beginning: tokens (n_sequences, length), with one sequence
  // or more. Afterwards output().logits_row(i) and feature_row(i) belong to token i, counted
  // through all sequences; logits are present only if requested. Throws Error if the sequences are
  // longer than the context.
  void run(std::span<const TokenId> tokens, int n_sequences, bool logits,
           std::span<const int> feature_layers);
  const ForwardOutput& output() const { return output_; }

  // (vocabulary_size, dim), row-major: the matrices that this target's heads share with it. They
  // include the scales that the target applies to embeddings and to logits.
  std::vector<float> input_matrix();
  std::vector<float> output_matrix();

 private:
  std::unique_ptr<LanguageModel> model_;
  ForwardOutput output_;
};

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_TEACHER_H_
