// SPDX-License-Identifier: Apache-2.0
// Compares the trainer with PyTorch and Hugging Face transformers on the same weights:
// tests/golden/make/make_training_losses.py.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/temporary_directory.h"
#include "train/losses/losses.h"
#include "train/modules/llama_module.h"
#include "train/objective.h"
#include "train/objectives/lm.h"
#include "train/output/model_directory.h"
#include "train/training_run.h"

namespace outrider::train {
namespace {

using torch::Tensor;

constexpr int kVocabulary = 61;
constexpr int kLength = 12;
constexpr int kSequences = 2;
// Both sides sum in f32, in different orders; over four steps the difference stays well below this.
constexpr double kTolerance = 1e-5;

ModelConfig reference_config() {
  ModelConfig config;
  config.architecture = "llama";
  config.vocabulary_size = kVocabulary;
  config.context_length = 64;
  config.n_layers = 2;
  config.dim = 24;
  config.n_heads = 4;
  config.n_kv_heads = 2;
  config.head_dim = 6;
  config.hidden_dim = 40;
  config.norm_epsilon = 1e-5F;
  return config;
}

Tensor formula(int ordinal, std::int64_t n) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < n; ++i) {
    values.push_back(std::sin(0.7 * static_cast<double>(i) + 1.3 * ordinal));
  }
  return torch::tensor(values, torch::kFloat64);
}

void fill_by_formula(torch::nn::Module& module) {
  const torch::NoGradGuard no_grad;
  const auto parameters = module.named_parameters();
  std::vector<std::string> names = parameters.keys();
  std::sort(names.begin(), names.end());
  for (std::size_t ordinal = 0; ordinal < names.size(); ++ordinal) {
    Tensor parameter = parameters[names[ordinal]];
    const Tensor values =
        formula(static_cast<int>(ordinal), parameter.numel()).view(parameter.sizes());
    const bool is_norm = names[ordinal].find("norm.weight") != std::string::npos;
    parameter.copy_(is_norm ? 1 + 0.1 * values : 0.3 * values);
  }
}

class FixedBatch final : public BatchSource {
 public:
  Batch batch(std::int64_t) override {
    Batch batch{.n_sequences = kSequences, .length = kLength, .tokens = {}, .weights = {}};
    for (int s = 0; s < kSequences; ++s) {
      for (int i = 0; i < kLength; ++i) {
        batch.tokens.push_back((7 * i + 11 * s + i * i) % kVocabulary);
        batch.weights.push_back(i == 0 ? 0.0F : 1.0F);
      }
    }
    return batch;
  }
  std::int64_t n_tokens() const override { return kSequences * kLength; }
  std::uint64_t fingerprint() const override { return 0; }
};

nlohmann::json golden() {
  std::ifstream file(std::filesystem::path(OUTRIDER_SOURCE_DIR) / "tests" / "golden" /
                     "training_losses.json");
  return nlohmann::json::parse(file);
}

TEST(TrainingReference, DivergencesArePyTorchs) {
  LlamaModule model = make_llama(reference_config(), Products::full, {}, 1);
  fill_by_formula(*model);
  const torch::NoGradGuard no_grad;
  const Batch batch = FixedBatch().batch(0);
  const Tensor tokens = torch::tensor(batch.tokens, torch::kInt64).view({kSequences, kLength});
  const Tensor logits =
      model->logits(model->features(tokens.narrow(1, 0, kLength - 1))).flatten(0, 1);
  const Tensor teacher = 2 * formula(99, logits.numel()).to(torch::kFloat32).view(logits.sizes());
  const nlohmann::json expected = golden();
  const std::pair<Divergence, const char*> divergences[] = {
      {Divergence::forward_kl, "forward_kl"},
      {Divergence::reverse_kl, "reverse_kl"},
      {Divergence::jensen_shannon, "jensen_shannon"},
      {Divergence::total_variation, "total_variation"}};
  for (const auto& [divergence, name] : divergences) {
    EXPECT_NEAR(divergence_rows(divergence, logits, teacher).mean().item<double>(),
                expected[name].get<double>(), kTolerance)
        << name;
  }
}

TEST(TrainingReference, StepsArePyTorchs) {
  // The formula's weights are loaded as a starting model.
  const test::TemporaryDirectory directory;
  LlamaModule model = make_llama(reference_config(), Products::full, {}, 1);
  fill_by_formula(*model);
  write_parameters(directory.path() / "init", "model.safetensors", *model, ElementType::f32);

  LmOptions options;
  options.config = reference_config();
  options.products = Products::full;
  options.init = directory.path() / "init";
  options.batches = std::make_shared<FixedBatch>();
  RunOptions run;
  run.directory = directory.path() / "run";
  run.schedule = {.peak = 0.01, .final_share = 1, .n_warmup = 0, .n_steps = 4};
  // An epsilon this large prevents the sign of a gradient that is only rounding from becoming a
  // whole step.
  run.optimizer.epsilon = 1e-3;
  std::vector<StepReport> reports;
  run_training(*make_lm(options), run,
               {.on_step = [&](const StepReport& report) { reports.push_back(report); }});
  const nlohmann::json expected = golden()["steps"];
  ASSERT_EQ(reports.size(), expected.size());
  for (std::size_t step = 0; step < reports.size(); ++step) {
    EXPECT_NEAR(reports[step].loss, expected[step]["loss"].get<double>(), kTolerance) << step;
    EXPECT_NEAR(reports[step].gradient_norm, expected[step]["gradient_norm"].get<double>(),
                10 * kTolerance)
        << step;
  }
}

}  // namespace
}  // namespace outrider::train
