// SPDX-License-Identifier: Apache-2.0
#include "train/objectives/pard.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "model/config.h"
#include "outrider/error.h"
#include "train/batches/batch_tensors.h"
#include "train/batches/mask_rows.h"
#include "train/losses/losses.h"
#include "train/losses/weighted_means.h"
#include "train/modules/llama_config.h"
#include "train/modules/llama_module.h"
#include "train/objective.h"
#include "train/output/model_directory.h"
#include "train/training_device.h"

namespace outrider::train {
namespace {

using torch::Tensor;

const PardOptions& checked(const PardOptions& options, const ModelConfig& config) {
  if (options.mask < 0 || options.mask >= config.vocabulary_size) {
    throw UsageError("train pard", "mask-token",
                     fmt::format("a token of the drafter, 0 to {}", config.vocabulary_size - 1),
                     fmt::format("{}", options.mask));
  }
  require_valid(options.rows, "train pard", "tokens");
  return options;
}

class PardObjective final : public Objective {
 public:
  explicit PardObjective(const PardOptions& options)
      : options_(checked(options, read_llama_config(options.drafter))),
        stored_config_(read_json(options.drafter / "config.json")),
        // Without a seed: every weight is read from the drafter's files.
        drafter_(make_llama(read_llama_config(options.drafter), options.products, options.drafter,
                            /*seed=*/0)) {}

  torch::nn::Module& trained() override { return *drafter_; }
  Loss loss(std::int64_t batch_number) override;
  std::vector<Metric> evaluate() override;
  void export_to(const std::filesystem::path& directory) override;

 private:
  // The outputs and targets of a batch's rows: text rows first, then mask rows.
  struct Said {
    Tensor features;  // (n_sequences, n_rows, dim)
    Tensor tokens;    // (n_sequences, n_rows) int64
    Tensor weights;   // (n_sequences, n_rows): the weight of each
  };
  Said say(const Batch& batch, const MaskRows& rows);

  PardOptions options_;
  // Unchanged: the export may replace the drafter's own files.
  nlohmann::ordered_json stored_config_;
  LlamaModule drafter_;
};

PardObjective::Said PardObjective::say(const Batch& batch, const MaskRows& rows) {
  const BatchTensors tensors(batch);
  const torch::Device device = training_device();
  const Tensor inputs = tensors.inputs();
  const Tensor masks = torch::full({inputs.size(0), rows.size()}, options_.mask, inputs.options());
  const RowPlaces places = {.positions = rows.places.positions.to(device),
                            .unseen = rows.places.unseen.to(device)};
  Said said;
  said.features = drafter_->features_among(torch::cat({inputs, masks}, 1), places);
  said.tokens = tensors.targets().index_select(1, places.positions);
  said.weights = tensors.target_weights().index_select(1, places.positions);
  return said;
}

Loss PardObjective::loss(std::int64_t batch_number) {
  const Batch batch = options_.batches->batch(batch_number);
  const Said said = say(batch, MaskRows(batch.length - 1, options_.rows));
  const Tensor weights = said.weights.to(said.features.scalar_type());
  return {.value = weighted_mean(drafter_->token_losses(said.features, said.tokens), weights),
          .n_tokens = (said.weights > 0).sum().item<std::int64_t>(),
          .metrics = {}};
}

std::vector<Metric> PardObjective::evaluate() {
  if (options_.held_out == nullptr) return {};
  const torch::NoGradGuard no_grad;
  const int n_drafted = options_.rows.n_drafted;
  WeightedMeans means;
  for (int number = 0; number < options_.n_held_out_batches; ++number) {
    const Batch batch = options_.held_out->batch(number);
    const MaskRows rows = MaskRows::held_out(batch.length - 1, n_drafted, number);
    const Said said = say(batch, rows);
    const Tensor losses = drafter_->token_losses(said.features, said.tokens);
    const Tensor agrees =
        (drafter_->logits(said.features).argmax(-1) == said.tokens).to(losses.scalar_type());
    // (n_drafts, n_drafted): the row of each token of the complete drafts.
    const Tensor row_of = rows.whole_drafts(n_drafted).to(losses.device());
    if (row_of.size(0) == 0) continue;
    const auto by_draft = [&](const Tensor& of_rows) {
      return of_rows.index_select(1, row_of.flatten())
          .view({of_rows.size(0), row_of.size(0), n_drafted});
    };
    const Tensor counts = (by_draft(said.weights) > 0).all(-1).to(losses.scalar_type());
    const Tensor draft_losses = by_draft(losses);
    const Tensor draft_agrees = by_draft(agrees);
    const auto n_counted = counts.sum().item<double>();
    const auto add = [&](const std::string& name, const Tensor& of_drafts) {
      means.add(name, weighted_mean(of_drafts, counts).item<double>(), n_counted);
    };
    add("loss", draft_losses.mean(-1));
    add("accepted", draft_agrees.cumprod(-1).sum(-1));
    for (int k = 1; k <= n_drafted; ++k) {
      add(fmt::format("loss_{}", k), draft_losses.select(-1, k - 1));
      add(fmt::format("agreement_{}", k), draft_agrees.select(-1, k - 1));
    }
  }
  return means.metrics();
}

void PardObjective::export_to(const std::filesystem::path& directory) {
  copy_tokenizer(options_.drafter, directory);
  copy_file_whole(options_.drafter / "generation_config.json", directory);
  write_parameters(directory, "model.safetensors", *drafter_, options_.export_type);
  nlohmann::ordered_json config = stored_config_;
  // Newer files use dtype, older ones torch_dtype.
  config[config.contains("dtype") ? "dtype" : "torch_dtype"] =
      options_.export_type == ElementType::bf16 ? "bfloat16" : "float32";
  config["pard_token"] = options_.mask;
  write_json(directory, "config.json", config);
}

}  // namespace

std::shared_ptr<Objective> make_pard(const PardOptions& options) {
  return std::make_shared<PardObjective>(options);
}

}  // namespace outrider::train
