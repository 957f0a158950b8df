// SPDX-License-Identifier: Apache-2.0
#include "train/objectives/lm.h"

#include <fmt/format.h>

#include <utility>

#include "train/batches/batch_tensors.h"
#include "train/losses/losses.h"
#include "train/losses/weighted_means.h"
#include "train/modules/llama_module.h"
#include "train/modules/mtp_module.h"
#include "train/objective.h"
#include "train/output/model_directory.h"

namespace outrider::train {
namespace {

using torch::Tensor;

// A model with its modules, if any.
class LmWithModulesImpl : public torch::nn::Module {
 public:
  LmWithModulesImpl(const LlamaModule& model, int n_modules) {
    register_module("lm", model);
    modules = register_module("mtp", MtpModules(model->config(), model->products(), n_modules));
  }
  MtpModules modules{nullptr};
};
TORCH_MODULE(LmWithModules);

class LmObjective final : public Objective {
 public:
  explicit LmObjective(const LmOptions& options)
      : options_(options),
        model_(make_llama(options.config, options.products, options.init, options.seed)) {
    model_->set_dropout(options.dropout);
    if (options.n_mtp_modules > 0) with_modules_ = LmWithModules(model_, options.n_mtp_modules);
  }

  torch::nn::Module& trained() override {
    if (with_modules_) return *with_modules_;
    return *model_;
  }
  Loss loss(std::int64_t batch_number) override;
  std::vector<Metric> evaluate() override;
  void export_to(const std::filesystem::path& directory) override;

 private:
  struct Judged {
    Tensor mean;  // of the model
    double n_counted = 0;
    std::vector<MtpParts> modules;
  };
  Judged judge(const Batch& batch);

  LmOptions options_;
  LlamaModule model_;
  LmWithModules with_modules_{nullptr};
};

LmObjective::Judged LmObjective::judge(const Batch& batch) {
  const BatchTensors tensors(batch);
  const Tensor features = model_->features(tensors.inputs());
  const Tensor weights = tensors.target_weights().to(features.scalar_type());
  // With modules, the logits are evaluated too; without, they are never held in f32.
  Tensor logits;
  if (with_modules_) logits = model_->logits(features);
  Judged judged{weighted_mean(with_modules_ ? cross_entropy_rows(logits, tensors.targets())
                                            : model_->token_losses(features, tensors.targets()),
                              weights),
                weights.sum().item<double>(),
                {}};
  if (with_modules_) {
    const MtpTrunk trunk{.features = features,
                         .embed = [&](const Tensor& tokens) { return model_->embed(tokens); },
                         .logits = [&](const Tensor& x) { return model_->logits(x); }};
    judged.modules = judge_mtp(with_modules_->modules, trunk, tensors.tokens,
                               tensors.weights.to(features.scalar_type()), logits.detach());
  }
  return judged;
}

Loss LmObjective::loss(std::int64_t batch_number) {
  const Judged judged = judge(options_.batches->batch(batch_number));
  Loss total{
      .value = judged.mean, .n_tokens = static_cast<std::int64_t>(judged.n_counted), .metrics = {}};
  if (!judged.modules.empty()) total.metrics.emplace_back("lm_loss", judged.mean.item<double>());
  for (std::size_t k = 0; k < judged.modules.size(); ++k) {
    const MtpParts& parts = judged.modules[k];
    total.value = total.value + parts.loss * (options_.mtp_weight / options_.n_mtp_modules);
    total.metrics.emplace_back(fmt::format("mtp_loss_{}", k + 1), parts.loss.item<double>());
  }
  return total;
}

std::vector<Metric> LmObjective::evaluate() {
  if (options_.held_out == nullptr) return {};
  const torch::NoGradGuard no_grad;
  trained().eval();  // nothing is left out
  WeightedMeans means;
  for (int number = 0; number < options_.n_held_out_batches; ++number) {
    const Judged judged = judge(options_.held_out->batch(number));
    means.add("loss", judged.mean.item<double>(), judged.n_counted);
    for (std::size_t k = 0; k < judged.modules.size(); ++k) {
      const MtpParts& parts = judged.modules[k];
      const auto weight = parts.weight.item<double>();
      means.add(fmt::format("mtp_loss_{}", k + 1), parts.loss.item<double>(), weight);
      means.add(fmt::format("mtp_agreement_{}", k + 1), parts.agreement.item<double>(), weight);
      means.add(fmt::format("mtp_overlap_{}", k + 1), parts.overlap.item<double>(), weight);
    }
  }
  trained().train();
  return means.metrics();
}

void LmObjective::export_to(const std::filesystem::path& directory) {
  copy_tokenizer(options_.tokenizer, directory);
  nlohmann::ordered_json json = llama_config_json(model_->config(), options_.export_type);
  std::vector<NamedTensor> tensors;
  for (const auto& parameter : model_->named_parameters()) {
    tensors.push_back({parameter.key(), parameter.value()});
  }
  if (with_modules_) {
    for (NamedTensor& tensor : with_modules_->modules->named_tensors()) {
      tensors.push_back(std::move(tensor));
    }
    json["num_nextn_predict_layers"] = options_.n_mtp_modules;
  }
  write_tensors(directory, "model.safetensors", tensors, options_.export_type);
  write_json(directory, "config.json", json);
}

}  // namespace

std::shared_ptr<Objective> make_lm(const LmOptions& options) {
  return std::make_shared<LmObjective>(options);
}

}  // namespace outrider::train
