// SPDX-License-Identifier: Apache-2.0
#include "train/objectives/distill.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "outrider/error.h"
#include "train/batches/batch_tensors.h"
#include "train/losses/distillation.h"
#include "train/modules/llama_module.h"
#include "train/objective.h"
#include "train/output/model_directory.h"

namespace outrider::train {
namespace {

using torch::Tensor;

class DistillObjective final : public Objective {
 public:
  explicit DistillObjective(const DistillOptions& options)
      : options_(options),
        drafter_(make_llama(options.config, options.products, options.init, options.seed)) {
    const int n_target = options_.target->config().vocabulary_size;
    if (options_.config.vocabulary_size != n_target) {
      throw Error("distill", "drafter's vocabulary",
                  fmt::format("the target's {} tokens", n_target),
                  fmt::format("{}", options_.config.vocabulary_size));
    }
  }

  torch::nn::Module& trained() override { return *drafter_; }
  Loss loss(std::int64_t batch_number) override;
  std::vector<Metric> evaluate() override;
  void export_to(const std::filesystem::path& directory) override;

 private:
  ComparedDistributions compare(const Batch& batch);
  bool is_on_policy(std::int64_t batch_number) const;
  void write_on(Batch& batch);

  DistillOptions options_;
  LlamaModule drafter_;
};

ComparedDistributions DistillObjective::compare(const Batch& batch) {
  const BatchTensors tensors(batch);
  const Tensor inputs = tensors.inputs();
  const Tensor listed = inputs.to(torch::kCPU).contiguous();
  std::vector<TokenId> read(static_cast<std::size_t>(listed.numel()));
  std::copy_n(listed.data_ptr<std::int64_t>(), listed.numel(), read.begin());
  options_.target->run(read, batch.n_sequences, true, {});
  const ForwardOutput& output = options_.target->output();
  const Tensor draft_logits = drafter_->logits(drafter_->features(inputs)).flatten(0, 1);
  // A copy, since the engine's next pass overwrites it.
  const Tensor target_logits =
      torch::from_blob(const_cast<float*>(output.logits.values().data()),
                       {output.logits.n_rows(), output.logits.vocabulary_size()}, torch::kFloat32)
          .to(training_device(), draft_logits.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
  return {draft_logits, target_logits, draft_logits.argmax(-1) == target_logits.argmax(-1),
          tensors.target_weights().flatten().to(draft_logits.scalar_type())};
}

bool DistillObjective::is_on_policy(std::int64_t batch_number) const {
  // 53 bits, a double's precision.
  const double uniform =
      static_cast<double>(mix(options_.seed, static_cast<std::uint64_t>(batch_number), 2) >> 11) *
      0x1p-53;
  return uniform < options_.on_policy;
}

// Replaces the text after the prompts by samples from the drafter.
void DistillObjective::write_on(Batch& batch) {
  const torch::NoGradGuard no_grad;
  const int n_prompt = std::min(options_.n_prompt, batch.length - 1);
  const BatchTensors tensors(batch);
  std::vector<PastKeys> past;
  Tensor written = tensors.tokens.narrow(1, 0, n_prompt);
  Tensor next = written;
  while (written.size(1) < batch.length) {
    const Tensor features = drafter_->features(next, &past);
    const Tensor logits = drafter_->logits(features.select(1, features.size(1) - 1));
    next = torch::multinomial(torch::softmax(logits, -1), 1);
    written = torch::cat({written, next}, 1);
  }
  written = written.to(torch::kCPU).contiguous();
  std::copy_n(written.data_ptr<std::int64_t>(), written.numel(), batch.tokens.begin());
  for (std::size_t i = 0; i < batch.weights.size(); ++i) {
    batch.weights[i] =
        i % static_cast<std::size_t>(batch.length) >= static_cast<std::size_t>(n_prompt) ? 1 : 0;
  }
}

Loss DistillObjective::loss(std::int64_t batch_number) {
  Batch batch = options_.batches->batch(batch_number);
  if (is_on_policy(batch_number)) write_on(batch);
  return distillation_loss(options_.divergence, compare(batch));
}

std::vector<Metric> DistillObjective::evaluate() {
  if (options_.held_out == nullptr) return {};
  const torch::NoGradGuard no_grad;
  WeightedMeans means;
  for (int number = 0; number < options_.n_held_out_batches; ++number) {
    add_distillation(options_.divergence, compare(options_.held_out->batch(number)), means);
  }
  return means.metrics();
}

void DistillObjective::export_to(const std::filesystem::path& directory) {
  copy_tokenizer(options_.tokenizer, directory);
  write_parameters(directory, "model.safetensors", *drafter_, options_.export_type);
  write_json(directory, "config.json", llama_config_json(drafter_->config(), options_.export_type));
}

}  // namespace

std::shared_ptr<Objective> make_distill(const DistillOptions& options) {
  return std::make_shared<DistillObjective>(options);
}

}  // namespace outrider::train
