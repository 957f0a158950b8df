// SPDX-License-Identifier: Apache-2.0
#include "train/objectives/online.h"

#include "model/config.h"
#include "train/batches/batch_tensors.h"
#include "train/losses/distillation.h"
#include "train/modules/llama_config.h"
#include "train/modules/llama_module.h"
#include "train/objective.h"
#include "train/output/model_directory.h"
#include "train/training_device.h"

namespace outrider::train {
namespace {

using torch::Tensor;

class OnlineObjective final : public Objective {
 public:
  explicit OnlineObjective(const OnlineOptions& options)
      : options_(options),
        stored_config_(read_json(options.drafter / "config.json")),
        // Without a seed: every weight is read from the drafter's files.
        drafter_(make_llama(read_llama_config(options.drafter), options.products, options.drafter,
                            /*seed=*/0)) {}

  torch::nn::Module& trained() override { return *drafter_; }
  Loss loss(std::int64_t batch_number) override {
    return distillation_loss(options_.divergence, compare(options_.texts->batch(batch_number)));
  }
  std::vector<Metric> evaluate() override;
  void export_to(const std::filesystem::path& directory) override;

 private:
  ComparedDistributions compare(const JudgedBatch& judged);

  OnlineOptions options_;
  // Unchanged: the export may replace the drafter's own files.
  nlohmann::ordered_json stored_config_;
  LlamaModule drafter_;
};

ComparedDistributions OnlineObjective::compare(const JudgedBatch& judged) {
  const BatchTensors batch(judged.batch);
  const auto n_rows = static_cast<std::int64_t>(judged.places.size());
  // The row that predicts a place is the one before it; a sequence's first place is never judged.
  const torch::Device device = training_device();
  const Tensor readers = torch::tensor(judged.places, torch::kInt64).to(device) - 1;
  const Tensor features = drafter_->features(batch.tokens).flatten(0, 1).index_select(0, readers);
  const Tensor logits = drafter_->logits(features);  // (n_rows, vocabulary)
  const Tensor ids =
      torch::tensor(judged.kept_ids, torch::kInt64).view({n_rows, judged.n_kept}).to(device);
  const Tensor kept = torch::tensor(judged.kept_logprobs).view({n_rows, judged.n_kept}).to(device);
  const Tensor rest = torch::tensor(judged.rest_logprobs).view({n_rows, 1}).to(device);
  const Tensor draft = coarsened_logprobs(logits, ids);
  const Tensor target = draft.size(1) == judged.n_kept ? kept : torch::cat({kept, rest}, 1);
  return {draft, target.to(draft.scalar_type()), logits.argmax(-1) == ids.select(1, 0),
          torch::ones({n_rows}, draft.options().requires_grad(false))};
}

std::vector<Metric> OnlineObjective::evaluate() {
  const torch::NoGradGuard no_grad;
  WeightedMeans means;
  for (int number = 0; number < options_.texts->n_held_out_batches(); ++number) {
    add_distillation(options_.divergence, compare(options_.texts->held_out_batch(number)), means);
  }
  return means.metrics();
}

void OnlineObjective::export_to(const std::filesystem::path& directory) {
  copy_tokenizer(options_.drafter, directory);
  copy_file_whole(options_.drafter / "generation_config.json", directory);
  write_parameters(directory, "model.safetensors", *drafter_, options_.export_type);
  nlohmann::ordered_json config = stored_config_;
  // Newer files use dtype, older ones torch_dtype.
  config[config.contains("dtype") ? "dtype" : "torch_dtype"] =
      options_.export_type == ElementType::bf16 ? "bfloat16" : "float32";
  write_json(directory, "config.json", config);
}

}  // namespace

std::shared_ptr<Objective> make_online(const OnlineOptions& options) {
  return std::make_shared<OnlineObjective>(options);
}

}  // namespace outrider::train
