// SPDX-License-Identifier: Apache-2.0
#include "train/objectives/eagle.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "outrider/error.h"
#include "train/losses/losses.h"
#include "train/losses/target_tensors.h"
#include "train/losses/weighted_means.h"
#include "train/modules/head_config.h"
#include "train/modules/llama_module.h"
#include "train/objective.h"
#include "train/output/model_directory.h"
#include "train/training_device.h"

namespace outrider::train {
namespace {

using torch::Tensor;

struct NamedInputs {
  const char* name;
  EagleInputs inputs;
};
constexpr std::array<NamedInputs, 4> kInputs = {
    {{"feature+shifted-token", EagleInputs::feature_shifted_token},
     {"feature+token", EagleInputs::feature_token},
     {"token", EagleInputs::token},
     {"feature", EagleInputs::feature}}};

// The depth of chains on held-out data: 0-alpha to 4-alpha, as in the paper.
constexpr int kMaxPredicted = 4;

bool reads_features(EagleInputs inputs) { return inputs != EagleInputs::token; }
bool reads_tokens(EagleInputs inputs) { return inputs != EagleInputs::feature; }

class EagleHeadImpl : public torch::nn::Module {
 public:
  EagleHeadImpl(const ModelConfig& config, Products products, EagleInputs inputs)
      : config_(config), products_(products), inputs_(inputs) {
    const int n_read = (reads_features(inputs) ? 1 : 0) + (reads_tokens(inputs) ? 1 : 0);
    fc_ = register_module("fc", torch::nn::Linear(n_read * config.dim, config.dim));
    layer_ = DecoderLayer(config, products, DecoderLayerImpl::Options{.input_norm = false});
    register_module("layers", torch::nn::ModuleList())->push_back(layer_);
  }

  // The head's next run over the text. Features and embeddings (n_sequences, n_rows, dim), matching
  // ones side by side -> predicted features of the same shape. n_predicted: the number of earlier
  // runs.
  Tensor forward(const Tensor& features, const Tensor& embeddings, int n_predicted,
                 UnrolledKeys& unrolled) {
    Tensor read = embeddings;
    if (inputs_ == EagleInputs::feature) read = features;
    if (reads_features(inputs_) && reads_tokens(inputs_)) {
      read = torch::cat({embeddings, features}, -1);
    }
    const Tensor x = project(read, fc_, products_);
    const auto n_rows = static_cast<int>(x.size(1));
    const Tensor attended = stream_sum(
        x, layer_->attend_unrolled(x, rotation_of(config_, n_predicted, n_rows, x.options()),
                                   causal_mask(n_rows, x.options()), unrolled));
    return stream_sum(attended,
                      layer_->feed_forward(layer_->post_attention_layernorm->forward(attended)));
  }

  torch::ScalarType type() const { return fc_->weight.scalar_type(); }

 private:
  ModelConfig config_;
  Products products_;
  EagleInputs inputs_;
  torch::nn::Linear fc_{nullptr};
  DecoderLayer layer_{nullptr};
};
TORCH_MODULE(EagleHead);

class EagleObjective final : public Objective {
 public:
  explicit EagleObjective(const EagleOptions& options)
      : options_(options),
        config_(head_config(options.run.target->config())),
        shared_(*options.run.target) {
    torch::manual_seed(options.run.seed);
    head_ = EagleHead(config_, options.run.products, options.inputs);
    initialise(*head_, 1);
    head_->to(training_device());
  }

  torch::nn::Module& trained() override { return *head_; }
  Loss loss(std::int64_t batch_number) override;
  std::vector<Metric> evaluate() override;
  void export_to(const std::filesystem::path& directory) override;

 private:
  TargetTensors look(const Batch& batch) {
    const std::array<int, 1> layers = {options_.run.target->config().n_layers};
    return {*options_.run.target, batch, layers, head_->type()};
  }

  // The embeddings of the tokens that belong to features of places n_predicted and later.
  Tensor embeddings(const TargetTensors& seen, int n_predicted, std::int64_t n_rows) const {
    const int shift = options_.inputs == EagleInputs::feature_token ? 0 : 1;
    return shared_.embed(later(seen.tokens, n_predicted + shift, n_rows), head_->type());
  }

  // The quality of predictions; row j predicts the feature of place j + 1 + n_predicted.
  struct Parts {
    Tensor feature_loss, token_loss, overlap, agreement;  // means
    Tensor weight;                                        // total over all rows
  };
  Parts judge(const Tensor& predicted, const TargetTensors& seen, int n_predicted) const;

  EagleOptions options_;
  ModelConfig config_;
  SharedMatrices shared_;
  EagleHead head_{nullptr};
};

EagleObjective::Parts EagleObjective::judge(const Tensor& predicted, const TargetTensors& seen,
                                            int n_predicted) const {
  const std::int64_t n_rows = predicted.size(1);
  const Tensor weights = later(seen.weights, n_predicted + 2, n_rows);
  const Tensor features = later(seen.features, n_predicted + 1, n_rows);
  const Tensor target_logits = later(seen.logits, n_predicted + 1, n_rows);
  const Tensor logits = shared_.logits(predicted, options_.run.products);
  const Tensor regression =
      torch::smooth_l1_loss(predicted, features, at::Reduction::None).mean(-1);
  const auto mean_of = [&](const Tensor& rows) { return weighted_mean(rows, weights); };
  Parts parts;
  parts.feature_loss = mean_of(regression);
  const DistributionRows dists = compare_distributions(logits, target_logits);
  parts.token_loss = mean_of(dists.cross_entropy);
  parts.overlap = mean_of(dists.overlap);
  const torch::NoGradGuard no_grad;
  parts.agreement =
      mean_of((logits.argmax(-1) == target_logits.argmax(-1)).to(weights.scalar_type()));
  parts.weight = weights.sum();
  return parts;
}

Loss EagleObjective::loss(std::int64_t batch_number) {
  const TargetTensors seen = look(options_.run.batches->batch(batch_number));
  const std::int64_t n_rows = seen.tokens.size(1) - 1;
  Tensor features = seen.features.narrow(1, 0, n_rows);
  if (options_.noise > 0) {
    features = features + (torch::rand_like(features) * 2 - 1) * options_.noise;
  }
  UnrolledKeys unrolled;
  const Tensor predicted = head_->forward(features, embeddings(seen, 0, n_rows), 0, unrolled);
  const Parts parts = judge(predicted, seen, 0);
  return {.value = parts.feature_loss + options_.token_weight * parts.token_loss,
          .n_tokens = static_cast<std::int64_t>(parts.weight.item<double>()),
          .metrics = {{"feature_loss", parts.feature_loss.item<double>()},
                      {"token_loss", parts.token_loss.item<double>()},
                      {"agreement", parts.agreement.item<double>()}}};
}

std::vector<Metric> EagleObjective::evaluate() {
  if (options_.run.held_out == nullptr) return {};
  const torch::NoGradGuard no_grad;
  WeightedMeans means;
  for (int number = 0; number < options_.run.n_held_out_batches; ++number) {
    const TargetTensors seen = look(options_.run.held_out->batch(number));
    const std::int64_t n_rows = seen.tokens.size(1) - 1;
    Tensor features = seen.features.narrow(1, 0, n_rows);
    UnrolledKeys unrolled;
    for (int n_predicted = 0; n_predicted <= kMaxPredicted; ++n_predicted) {
      features =
          head_->forward(features, embeddings(seen, n_predicted, n_rows), n_predicted, unrolled);
      const Parts parts = judge(features, seen, n_predicted);
      const auto weight = parts.weight.item<double>();
      const auto feature_loss = parts.feature_loss.item<double>();
      const auto token_loss = parts.token_loss.item<double>();
      if (n_predicted == 0) {
        means.add("loss", feature_loss + options_.token_weight * token_loss, weight);
        means.add("feature_loss", feature_loss, weight);
        means.add("token_loss", token_loss, weight);
      }
      means.add(fmt::format("overlap_{}", n_predicted), parts.overlap.item<double>(), weight);
      means.add(fmt::format("agreement_{}", n_predicted), parts.agreement.item<double>(), weight);
    }
  }
  return means.metrics();
}

void EagleObjective::export_to(const std::filesystem::path& directory) {
  std::vector<NamedTensor> tensors = {{"embed_tokens.weight", shared_.input}};
  for (const auto& parameter : head_->named_parameters()) {
    tensors.push_back({parameter.key(), parameter.value()});
  }
  write_tensors(directory, "model.safetensors", tensors, options_.run.export_type);
  nlohmann::ordered_json json = llama_config_json(config_, options_.run.export_type);
  json["bias"] = true;  // fc's bias, for which public loaders look
  json["eagle_version"] = 1;
  json["eagle_inputs"] = name_of(options_.inputs);
  write_json(directory, "config.json", json);
}

}  // namespace

EagleInputs eagle_inputs_named(const std::string& name) {
  for (const NamedInputs& known : kInputs) {
    if (name == known.name) return known.inputs;
  }
  throw UsageError("read flags", "inputs", "feature+shifted-token, feature+token, token or feature",
                   name);
}

std::string name_of(EagleInputs inputs) {
  for (const NamedInputs& known : kInputs) {
    if (inputs == known.inputs) return known.name;
  }
  return {};
}

std::shared_ptr<Objective> make_eagle(const EagleOptions& options) {
  return std::make_shared<EagleObjective>(options);
}

}  // namespace outrider::train
