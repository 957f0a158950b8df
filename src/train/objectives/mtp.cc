// SPDX-License-Identifier: Apache-2.0
#include "train/objectives/mtp.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "io/safetensors/safetensors.h"
#include "outrider/error.h"
#include "train/losses/weighted_means.h"
#include "train/modules/mtp_module.h"
#include "train/objective.h"
#include "train/output/extended_directory.h"
#include "train/output/model_directory.h"

namespace outrider::train {
namespace {

using torch::Tensor;

class MtpObjective final : public Objective {
 public:
  explicit MtpObjective(const MtpOptions& options)
      : options_(options), shared_(*options.run.target) {
    if (options.n_modules < 1) {
      throw UsageError("train mtp", "modules", "at least 1", fmt::format("{}", options.n_modules));
    }
    if (!options.alone && !std::filesystem::is_directory(options.target_directory)) {
      throw UsageError("train mtp", "target",
                       "a Hugging Face directory, to copy and add to (or --alone)",
                       options.target_directory.string());
    }
    torch::manual_seed(options.run.seed);
    modules_ = MtpModules(options.run.target->config(), options.run.products, options.n_modules);
    if (!options.alone) check_that_they_are_new();
  }

  torch::nn::Module& trained() override { return *modules_; }
  Loss loss(std::int64_t batch_number) override;
  std::vector<Metric> evaluate() override;
  void export_to(const std::filesystem::path& directory) override;

 private:
  void check_that_they_are_new() const;
  std::vector<MtpParts> judge(const Batch& batch);

  MtpOptions options_;
  SharedMatrices shared_;
  MtpModules modules_{nullptr};
};

void MtpObjective::check_that_they_are_new() const {
  const auto stored = open_safetensors_directory(options_.target_directory);
  for (const NamedTensor& tensor : modules_->named_tensors()) {
    if (stored->find(tensor.name) == nullptr) continue;
    throw UsageError(
        "train mtp", "target", "a model without modules of its own",
        fmt::format("{}, which has {}", options_.target_directory.string(), tensor.name));
  }
}

std::vector<MtpParts> MtpObjective::judge(const Batch& batch) {
  const torch::ScalarType type = modules_->parameters().front().scalar_type();
  const std::array<int, 1> layers = {options_.run.target->config().n_layers};
  const TargetTensors seen(*options_.run.target, batch, layers, type);
  const MtpTrunk trunk{
      .features = seen.features.narrow(1, 0, seen.features.size(1) - 1),
      .embed = [&](const Tensor& tokens) { return shared_.embed(tokens, type); },
      .logits = [&](const Tensor& x) { return shared_.logits(x, options_.run.products); }};
  return judge_mtp(modules_, trunk, seen.tokens, seen.weights, seen.logits);
}

Loss MtpObjective::loss(std::int64_t batch_number) {
  const std::vector<MtpParts> all = judge(options_.run.batches->batch(batch_number));
  Loss total;
  for (std::size_t k = 0; k < all.size(); ++k) {
    const Tensor term = all[k].loss / static_cast<double>(all.size());
    total.value = k == 0 ? term : total.value + term;
    total.metrics.emplace_back(fmt::format("loss_{}", k + 1), all[k].loss.item<double>());
    total.metrics.emplace_back(fmt::format("agreement_{}", k + 1), all[k].agreement.item<double>());
    total.metrics.emplace_back(fmt::format("overlap_{}", k + 1), all[k].overlap.item<double>());
  }
  total.n_tokens = static_cast<std::int64_t>(all.front().weight.item<double>());
  return total;
}

std::vector<Metric> MtpObjective::evaluate() {
  if (options_.run.held_out == nullptr) return {};
  const torch::NoGradGuard no_grad;
  WeightedMeans means;
  for (int number = 0; number < options_.run.n_held_out_batches; ++number) {
    const std::vector<MtpParts> all = judge(options_.run.held_out->batch(number));
    double loss = 0;
    for (const MtpParts& parts : all) {
      loss += parts.loss.item<double>() / static_cast<double>(all.size());
    }
    means.add("loss", loss, all.front().weight.item<double>());
    for (std::size_t k = 0; k < all.size(); ++k) {
      const auto weight = all[k].weight.item<double>();
      means.add(fmt::format("loss_{}", k + 1), all[k].loss.item<double>(), weight);
      means.add(fmt::format("agreement_{}", k + 1), all[k].agreement.item<double>(), weight);
      means.add(fmt::format("overlap_{}", k + 1), all[k].overlap.item<double>(), weight);
    }
  }
  return means.metrics();
}

void MtpObjective::export_to(const std::filesystem::path& directory) {
  constexpr const char* kKey = "num_nextn_predict_layers";
  const std::vector<NamedTensor> tensors = modules_->named_tensors();
  const ElementType type = options_.run.export_type;
  if (!options_.alone) {
    write_extended_directory(options_.target_directory, directory, tensors, type,
                             {{kKey, options_.n_modules}});
    return;
  }
  nlohmann::ordered_json json = llama_config_json(options_.run.target->config(), type);
  json[kKey] = options_.n_modules;
  write_json(directory, "config.json", json);
  // Written last: without it the directory has no modules yet.
  write_tensors(directory, "model.safetensors", tensors, type);
}

}  // namespace

std::shared_ptr<Objective> make_mtp(const MtpOptions& options) {
  return std::make_shared<MtpObjective>(options);
}

}  // namespace outrider::train
