// SPDX-License-Identifier: Apache-2.0
#include "train/objectives/parallel_eagle.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "outrider/error.h"
#include "train/batches/mask_rows.h"
#include "train/losses/block_losses.h"
#include "train/losses/drafted_tokens.h"
#include "train/losses/losses.h"
#include "train/losses/target_tensors.h"
#include "train/losses/weighted_means.h"
#include "train/modules/eagle3_module.h"
#include "train/modules/head_config.h"
#include "train/objective.h"
#include "train/objectives/eagle3.h"
#include "train/output/model_directory.h"
#include "train/training_device.h"

namespace outrider::train {
namespace {

using torch::Tensor;

constexpr const char* kCommand = "train eagle";

const ParallelEagleOptions& checked(const ParallelEagleOptions& options) {
  const int n_tokens = options.run.target->config().vocabulary_size;
  if (options.mask < 0 || options.mask >= n_tokens) {
    throw UsageError(kCommand, "mask-token",
                     fmt::format("a token of the target, 0 to {}", n_tokens - 1),
                     fmt::format("{}", options.mask));
  }
  if (options.n_layers < 1) {
    throw UsageError(kCommand, "layers", "at least 1", fmt::format("{}", options.n_layers));
  }
  require_valid(options.rows, kCommand, "steps-ahead");
  return options;
}

class ParallelEagleObjective final : public Objective {
 public:
  explicit ParallelEagleObjective(const ParallelEagleOptions& options)
      : options_(checked(options)),
        config_(head_config(options.run.target->config())),
        layers_(eagle3_feature_layers(options.run.target->config().n_layers)),
        vocabulary_(options.draft_vocabulary, config_.vocabulary_size),
        shared_(*options.run.target) {
    config_.n_layers = options.n_layers;
    torch::manual_seed(options.run.seed);
    head_ =
        Eagle3Head(config_, options.run.products, shared_.output.index_select(0, vocabulary_.ids()),
                   Eagle3HeadImpl::Options{.n_layers = options.n_layers, .has_mask = true});
    head_->to(training_device());
  }

  torch::nn::Module& trained() override { return *head_; }
  Loss loss(std::int64_t batch_number) override;
  std::vector<Metric> evaluate() override;
  void export_to(const std::filesystem::path& directory) override;

 private:
  // For a batch's rows, the text's first: (n_sequences, n_rows, ...).
  struct Said {
    Tensor logits;                       // over the draft vocabulary
    DraftedTokens::Distributions dists;  // of the target
    Tensor weights;
  };
  Said say(const Batch& batch, const MaskRows& rows);

  ParallelEagleOptions options_;
  ModelConfig config_;
  std::array<int, 3> layers_;
  DraftedTokens vocabulary_;
  SharedMatrices shared_;
  Eagle3Head head_{nullptr};
};

ParallelEagleObjective::Said ParallelEagleObjective::say(const Batch& batch, const MaskRows& rows) {
  const TargetTensors seen(*options_.run.target, batch, layers_, head_->type());
  const std::int64_t n_text = seen.tokens.size(1) - 1;
  const std::int64_t n = seen.tokens.size(0);
  const RowPlaces places = {.positions = rows.places.positions.to(training_device()),
                            .unseen = rows.places.unseen.to(training_device())};
  const Tensor masks = torch::full({n, rows.size()}, options_.mask, seen.tokens.options());
  const Tensor read = torch::cat({later(seen.tokens, 1, n_text), masks}, 1);
  const Tensor fused = head_->fuse(seen.features.narrow(1, 0, n_text));
  const Tensor hidden =
      torch::cat({fused, head_->fused_mask().expand({n, rows.size(), config_.dim})}, 1);
  const Tensor given = head_->forward_among(hidden, shared_.embed(read, head_->type()), places);
  // The row at position p predicts what the target predicts at place p + 1: the token of place p +
  // 2.
  return {.logits = head_->logits(given),
          .dists = vocabulary_.distributions_of(seen.logits.index_select(1, places.positions + 1)),
          .weights = later(seen.weights, 2, n_text).index_select(1, places.positions)};
}

Loss ParallelEagleObjective::loss(std::int64_t batch_number) {
  const Batch batch = options_.run.batches->batch(batch_number);
  const Said said = say(batch, MaskRows(batch.length - 1, options_.rows));
  const Tensor weights = said.weights.to(said.logits.scalar_type());
  return {.value = weighted_mean(DraftedTokens::losses(said.logits, said.dists), weights),
          .n_tokens = (said.weights > 0).sum().item<std::int64_t>(),
          .metrics = {}};
}

std::vector<Metric> ParallelEagleObjective::evaluate() {
  if (options_.run.held_out == nullptr) return {};
  const torch::NoGradGuard no_grad;
  const int n_drafted = options_.rows.n_drafted;
  WeightedMeans means;
  for (int number = 0; number < options_.run.n_held_out_batches; ++number) {
    const Batch batch = options_.run.held_out->batch(number);
    const MaskRows rows = MaskRows::held_out(batch.length - 1, n_drafted, number);
    const Tensor row_of = rows.whole_drafts(n_drafted).to(training_device());
    if (row_of.size(0) == 0) continue;
    const Said said = say(batch, rows);
    const auto by_draft = [&](const Tensor& of_rows) {
      return of_rows.index_select(1, row_of.flatten())
          .view({of_rows.size(0), row_of.size(0), n_drafted});
    };
    const Tensor overlaps = by_draft(vocabulary_.overlaps(said.logits, said.dists));
    const Tensor agrees = by_draft(vocabulary_.agrees(said.logits, said.dists));
    const Tensor counts = (by_draft(said.weights) > 0).all(-1).to(overlaps.scalar_type());
    const auto n_counted = counts.sum().item<double>();
    const auto add = [&](const std::string& name, const Tensor& of_drafts) {
      means.add(name, weighted_mean(of_drafts, counts).item<double>(), n_counted);
    };
    add("loss", by_draft(DraftedTokens::losses(said.logits, said.dists)).mean(-1));
    add("accepted_0", accepted_length(agrees));
    add("accepted_1", accepted_length(overlaps));
    for (int k = 1; k <= n_drafted; ++k) {
      add(fmt::format("agreement_{}", k), agrees.select(-1, k - 1));
      add(fmt::format("overlap_{}", k), overlaps.select(-1, k - 1));
    }
  }
  return means.metrics();
}

void ParallelEagleObjective::export_to(const std::filesystem::path& directory) {
  std::vector<NamedTensor> tensors = {{"d2t", vocabulary_.offsets()},
                                      {"t2d", vocabulary_.is_drafted()}};
  for (const auto& parameter : head_->named_parameters()) {
    tensors.push_back({parameter.key(), parameter.value()});
  }
  write_tensors(directory, "model.safetensors", tensors, options_.run.export_type);
  nlohmann::ordered_json json = llama_config_json(config_, options_.run.export_type);
  json["architectures"] = {"LlamaForCausalLMEagle3"};
  json["draft_vocab_size"] = vocabulary_.ids().size(0);
  json["eagle_version"] = 3;
  json["feature_layers"] = layers_;
  json["ptd_token_id"] = options_.mask;
  json["parallel_drafting"] = true;
  write_json(directory, "config.json", json);
}

}  // namespace

std::shared_ptr<Objective> make_parallel_eagle(const ParallelEagleOptions& options) {
  return std::make_shared<ParallelEagleObjective>(options);
}

}  // namespace outrider::train
