// SPDX-License-Identifier: Apache-2.0
#include "train/modules/mtp_module.h"

#include <fmt/format.h>

#include "train/training_device.h"

namespace outrider::train {
namespace {

using torch::Tensor;

// A component of parameter names: "shared_head".
class GroupImpl : public torch::nn::Module {};
TORCH_MODULE(Group);

}  // namespace

MtpModulesImpl::MtpModulesImpl(const ModelConfig& config, Products products, int n_modules)
    : config_(config), products_(products) {
  const auto norm = [&] { return RmsNorm(config.dim, config.norm_epsilon); };
  for (int k = 0; k < n_modules; ++k) {
    Depth depth;
    depth.block = register_module(fmt::format("{}", k), DecoderLayer(config, products));
    depth.embedding_norm = depth.block->register_module("enorm", norm());
    depth.hidden_norm = depth.block->register_module("hnorm", norm());
    depth.join = depth.block->register_module(
        "eh_proj",
        torch::nn::Linear(torch::nn::LinearOptions(2 * config.dim, config.dim).bias(false)));
    auto head = depth.block->register_module("shared_head", Group());
    depth.head_norm = head->register_module("norm", norm());
    modules_.push_back(std::move(depth));
  }
  initialise(*this, config.n_layers + n_modules);
  to(training_device());
}

Tensor MtpModulesImpl::forward(int k, const Tensor& before, const Tensor& embeddings) {
  Depth& depth = modules_[static_cast<std::size_t>(k)];
  const Tensor joined = project(
      torch::cat({depth.embedding_norm->forward(embeddings), depth.hidden_norm->forward(before)},
                 -1),
      depth.join, products_);
  const auto n_rows = static_cast<int>(joined.size(1));
  return depth.block->forward(joined, rotation_of(config_, 0, n_rows, joined.options()));
}

Tensor MtpModulesImpl::head_input(int k, const Tensor& given) {
  return modules_[static_cast<std::size_t>(k)].head_norm->forward(given);
}

std::vector<NamedTensor> MtpModulesImpl::named_tensors() const {
  std::vector<NamedTensor> tensors;
  for (std::size_t k = 0; k < modules_.size(); ++k) {
    for (const auto& parameter : modules_[k].block->named_parameters()) {
      tensors.push_back(
          {fmt::format("model.layers.{}.{}", static_cast<std::size_t>(config_.n_layers) + k,
                       parameter.key()),
           parameter.value()});
    }
  }
  return tensors;
}

std::vector<MtpParts> judge_mtp(MtpModules& modules, const MtpTrunk& trunk, const Tensor& tokens,
                                const Tensor& weights, const Tensor& model_logits) {
  const std::int64_t n_rows = trunk.features.size(1);
  std::vector<MtpParts> all;
  Tensor hidden = trunk.features;
  for (int k = 0; k < modules->n_modules(); ++k) {
    hidden = modules->forward(k, hidden, trunk.embed(later(tokens, k + 1, n_rows)));
    const Tensor logits = trunk.logits(modules->head_input(k, hidden));
    const Tensor row_weights = later(weights, k + 2, n_rows);
    MtpParts parts;
    parts.loss =
        weighted_mean(cross_entropy_rows(logits, later(tokens, k + 2, n_rows)), row_weights);
    const torch::NoGradGuard no_grad;
    const Tensor judge = later(model_logits, k + 1, n_rows);
    parts.overlap = weighted_mean(compare_distributions(logits, judge).overlap, row_weights);
    parts.agreement = weighted_mean(
        (logits.argmax(-1) == judge.argmax(-1)).to(row_weights.scalar_type()), row_weights);
    parts.weight = row_weights.sum();
    all.push_back(std::move(parts));
  }
  return all;
}

}  // namespace outrider::train
