// SPDX-License-Identifier: Apache-2.0
#include "train/objectives/medusa.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "outrider/error.h"
#include "train/losses/losses.h"
#include "train/losses/target_tensors.h"
#include "train/losses/weighted_means.h"
#include "train/modules/llama_module.h"
#include "train/objective.h"
#include "train/output/model_directory.h"
#include "train/training_device.h"

namespace outrider::train {
namespace {

using torch::Tensor;

class ResidualBlockImpl : public torch::nn::Module {
 public:
  explicit ResidualBlockImpl(int dim) {
    linear = register_module("linear", torch::nn::Linear(dim, dim));
    const torch::NoGradGuard no_grad;
    linear->weight.zero_();  // initially the head equals the target's own output
    linear->bias.zero_();
  }
  Tensor forward(const Tensor& x, Products products) {
    return x + torch::silu(project(x, linear, products));
  }
  torch::nn::Linear linear{nullptr};
};
TORCH_MODULE(ResidualBlock);

class MedusaHeadImpl : public torch::nn::Module {
 public:
  MedusaHeadImpl(int dim, const Tensor* lm_head) {
    block = register_module("0", ResidualBlock(dim));
    if (lm_head == nullptr) return;
    output = register_module(
        "1", torch::nn::Linear(torch::nn::LinearOptions(dim, lm_head->size(0)).bias(false)));
    const torch::NoGradGuard no_grad;
    output->weight.copy_(*lm_head);
  }
  ResidualBlock block{nullptr};
  torch::nn::Linear output{nullptr};  // null: uses the target's
};
TORCH_MODULE(MedusaHead);

class MedusaHeadsImpl : public torch::nn::Module {
 public:
  MedusaHeadsImpl(int dim, int n_heads, const Tensor* lm_head) {
    for (int i = 0; i < n_heads; ++i) {
      heads.push_back(register_module(fmt::format("{}", i), MedusaHead(dim, lm_head)));
    }
  }
  std::vector<MedusaHead> heads;
};
TORCH_MODULE(MedusaHeads);

class MedusaObjective final : public Objective {
 public:
  explicit MedusaObjective(const MedusaOptions& options)
      : options_(options), shared_(*options.run.target) {
    if (options.n_heads < 1) {
      throw UsageError("train medusa", "heads", "at least 1", fmt::format("{}", options.n_heads));
    }
    heads_ = MedusaHeads(options.run.target->config().dim, options.n_heads,
                         options.own_lm_head ? &shared_.output : nullptr);
    heads_->to(training_device());
  }

  torch::nn::Module& trained() override { return *heads_; }
  Loss loss(std::int64_t batch_number) override;
  std::vector<Metric> evaluate() override;
  void export_to(const std::filesystem::path& directory) override;

 private:
  TargetTensors look(const Batch& batch) {
    const std::array<int, 1> layers = {options_.run.target->config().n_layers};
    return {*options_.run.target, batch, layers,
            heads_->heads.front()->block->linear->weight.scalar_type()};
  }

  // For head k, counted from 1.
  struct Parts {
    Tensor loss, overlap, agreement, weight;
  };
  Parts judge(int k, const TargetTensors& seen);
  double factor(int k) const { return std::pow(options_.decay, k); }

  MedusaOptions options_;
  SharedMatrices shared_;
  MedusaHeads heads_{nullptr};
};

MedusaObjective::Parts MedusaObjective::judge(int k, const TargetTensors& seen) {
  const Products products = options_.run.products;
  MedusaHead& head = heads_->heads[static_cast<std::size_t>(k - 1)];
  const std::int64_t n_rows = seen.tokens.size(1);
  const Tensor x = head->block->forward(seen.features, products);
  const Tensor logits =
      head->output ? project(x, head->output, products) : shared_.logits(x, products);
  const Tensor weights = later(seen.weights, k + 1, n_rows);
  Parts parts;
  parts.loss =
      weighted_mean(cross_entropy_rows(logits, later(seen.tokens, k + 1, n_rows)), weights);
  const torch::NoGradGuard no_grad;
  const Tensor target_logits = later(seen.logits, k, n_rows);
  parts.overlap = weighted_mean(compare_distributions(logits, target_logits).overlap, weights);
  parts.agreement = weighted_mean(
      (logits.argmax(-1) == target_logits.argmax(-1)).to(weights.scalar_type()), weights);
  parts.weight = weights.sum();
  return parts;
}

Loss MedusaObjective::loss(std::int64_t batch_number) {
  const TargetTensors seen = look(options_.run.batches->batch(batch_number));
  Loss total;
  for (int k = 1; k <= options_.n_heads; ++k) {
    const Parts parts = judge(k, seen);
    const Tensor term = parts.loss * factor(k);
    total.value = k == 1 ? term : total.value + term;
    if (k == 1) total.n_tokens = static_cast<std::int64_t>(parts.weight.item<double>());
    total.metrics.emplace_back(fmt::format("loss_{}", k), parts.loss.item<double>());
    total.metrics.emplace_back(fmt::format("agreement_{}", k), parts.agreement.item<double>());
    total.metrics.emplace_back(fmt::format("overlap_{}", k), parts.overlap.item<double>());
  }
  return total;
}

std::vector<Metric> MedusaObjective::evaluate() {
  if (options_.run.held_out == nullptr) return {};
  const torch::NoGradGuard no_grad;
  WeightedMeans means;
  for (int number = 0; number < options_.run.n_held_out_batches; ++number) {
    const TargetTensors seen = look(options_.run.held_out->batch(number));
    for (int k = 1; k <= options_.n_heads; ++k) {
      const Parts parts = judge(k, seen);
      const auto weight = parts.weight.item<double>();
      means.add(fmt::format("loss_{}", k), parts.loss.item<double>(), weight);
      means.add(fmt::format("agreement_{}", k), parts.agreement.item<double>(), weight);
      means.add(fmt::format("overlap_{}", k), parts.overlap.item<double>(), weight);
    }
  }
  std::vector<Metric> metrics = means.metrics();
  double loss = 0;
  for (int k = 1; k <= options_.n_heads; ++k) {
    loss += factor(k) * metrics[static_cast<std::size_t>(k - 1) * 3].second;
  }
  metrics.insert(metrics.begin(), {"loss", loss});
  return metrics;
}

void MedusaObjective::export_to(const std::filesystem::path& directory) {
  const ModelConfig& config = options_.run.target->config();
  write_parameters(directory, "medusa_lm_head.safetensors", *heads_, options_.run.export_type);
  write_json(
      directory, "config.json",
      {{"model_type", "medusa"},
       {"medusa_num_heads", options_.n_heads},
       {"medusa_num_layers", 1},
       {"hidden_size", config.dim},
       {"vocab_size", config.vocabulary_size},
       {"torch_dtype", options_.run.export_type == ElementType::bf16 ? "bfloat16" : "float32"}});
}

}  // namespace

std::shared_ptr<Objective> make_medusa(const MedusaOptions& options) {
  return std::make_shared<MedusaObjective>(options);
}

}  // namespace outrider::train
