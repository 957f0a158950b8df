// SPDX-License-Identifier: Apache-2.0
#include "train/modules/block_module.h"

#include <cmath>
#include <limits>

namespace outrider::train {
namespace {

using torch::Tensor;

// A component of parameter names: "self_attn", "mlp".
class GroupImpl : public torch::nn::Module {};
TORCH_MODULE(Group);

torch::nn::Linear without_bias(int n_in, int n_out) {
  return torch::nn::Linear(torch::nn::LinearOptions(n_in, n_out).bias(false));
}

torch::ScalarType type_of(Products products, const Tensor& stream) {
  return products == Products::full ? stream.scalar_type() : torch::kBFloat16;
}

// libtorch would round every step to bf16.
Tensor widened(const Tensor& x) {
  return x.scalar_type() == torch::kBFloat16 ? x.to(torch::kFloat32) : x;
}

}  // namespace

BlockPlaces::BlockPlaces(const ModelConfig& config, const Tensor& anchors, int n_tokens,
                         int n_slots, const torch::TensorOptions& like) {
  const Rotation all = rotation_of(config, 0, n_tokens + n_slots, like);
  of_states = {all.cosines.narrow(0, 0, n_tokens), all.sines.narrow(0, 0, n_tokens)};
  const Tensor slots =
      (anchors.unsqueeze(-1) + torch::arange(n_slots, anchors.options())).flatten();
  of_slots = {all.cosines.index_select(0, slots), all.sines.index_select(0, slots)};
  unseen = torch::arange(n_tokens, anchors.options()) >= anchors.unsqueeze(-1);
}

BlockLayerImpl::BlockLayerImpl(const ModelConfig& config, Products products)
    : config_(config), products_(products) {
  const auto norm = [&](int dim) { return RmsNorm(dim, config.norm_epsilon); };
  const int query_width = config.n_heads * config.head_dim;
  const int kv_width = config.n_kv_heads * config.head_dim;
  input_norm_ = register_module("input_layernorm", norm(config.dim));
  auto attention = register_module("self_attn", Group());
  query_ = attention->register_module("q_proj", without_bias(config.dim, query_width));
  key_ = attention->register_module("k_proj", without_bias(config.dim, kv_width));
  value_ = attention->register_module("v_proj", without_bias(config.dim, kv_width));
  output_ = attention->register_module("o_proj", without_bias(query_width, config.dim));
  query_norm_ = attention->register_module("q_norm", norm(config.head_dim));
  key_norm_ = attention->register_module("k_norm", norm(config.head_dim));
  output_norm_ = register_module("post_attention_layernorm", norm(config.dim));
  auto mlp = register_module("mlp", Group());
  gate_ = mlp->register_module("gate_proj", without_bias(config.dim, config.hidden_dim));
  up_ = mlp->register_module("up_proj", without_bias(config.dim, config.hidden_dim));
  down_ = mlp->register_module("down_proj", without_bias(config.hidden_dim, config.dim));
}

Tensor BlockLayerImpl::placed(const Tensor& x, RmsNorm& norm, int n_heads, const Rotation& rotation,
                              double scale) {
  const Tensor heads = x.view({x.size(0), x.size(1), n_heads, config_.head_dim});
  const Tensor normed = norm->forward(widened(heads), x.scalar_type());
  return turned_heads(normed.view(x.sizes()), n_heads, rotation, scale);
}

Tensor BlockLayerImpl::attend(const Tensor& slots, const Tensor& states,
                              const BlockPlaces& places) {
  // Axes: sequences, blocks, slots, states; key-value heads, and queries per head.
  const std::int64_t n = slots.size(0);
  const std::int64_t b = slots.size(1);
  const std::int64_t t = slots.size(2);
  const std::int64_t c = states.size(1);
  const std::int64_t d = config_.head_dim;
  const std::int64_t kv = config_.n_kv_heads;
  const std::int64_t g = config_.n_heads / kv;

  // All slots as one text, whose positions need not be consecutive.
  const Tensor rows = slots.view({1, n * b * t, slots.size(3)});
  const double scale = 1 / std::sqrt(static_cast<double>(d));
  const Tensor query =
      placed(project(rows, query_, products_), query_norm_, config_.n_heads, places.of_slots, scale)
          .view({kv, g, n, b, t, d});
  const Tensor slot_keys =
      placed(project(rows, key_, products_), key_norm_, config_.n_kv_heads, places.of_slots, 1)
          .view({kv, n, b, t, d})
          .permute({1, 2, 0, 3, 4})
          .reshape({n * b * kv, t, d});
  const Tensor slot_values = project(rows, value_, products_)
                                 .view({n, b, t, kv, d})
                                 .permute({0, 1, 3, 2, 4})
                                 .reshape({n * b * kv, t, d});
  const Tensor state_keys =
      placed(project(states, key_, products_), key_norm_, config_.n_kv_heads, places.of_states, 1);
  const Tensor state_values =
      project(states, value_, products_).view({n, c, kv, d}).transpose(1, 2);

  // Queries that share keys are rows of one product: those of all blocks for states, those of a
  // block for its slots. Scores of both are side by side, (n, kv, g, b, t, c + t).
  const Tensor of_states = query.permute({2, 0, 1, 3, 4, 5}).reshape({n, kv, g * b * t, d});
  const Tensor of_slots = query.permute({2, 3, 0, 1, 4, 5}).reshape({n * b * kv, g * t, d});
  const Tensor state_scores =
      widened(torch::matmul(of_states, state_keys.transpose(2, 3)).view({n, kv, g, b, t, c}))
          .masked_fill(places.unseen.view({n, 1, 1, b, 1, c}),
                       -std::numeric_limits<double>::infinity());
  const Tensor slot_scores = widened(torch::matmul(of_slots, slot_keys.transpose(1, 2)))
                                 .view({n, b, kv, g, t, t})
                                 .permute({0, 2, 3, 1, 4, 5});
  const Tensor shares =
      torch::softmax(torch::cat({state_scores, slot_scores}, -1), -1).to(query.scalar_type());
  const Tensor from_states =
      torch::matmul(shares.narrow(-1, 0, c).reshape({n, kv, g * b * t, c}), state_values)
          .view({n, kv, g, b, t, d});
  const Tensor from_slots =
      torch::matmul(
          shares.narrow(-1, c, t).permute({0, 3, 1, 2, 4, 5}).reshape({n * b * kv, g * t, t}),
          slot_values)
          .view({n, b, kv, g, t, d})
          .permute({0, 2, 3, 1, 4, 5});
  const Tensor joined =
      (from_states + from_slots).permute({0, 3, 4, 1, 2, 5}).reshape({n, b, t, kv * g * d});
  return project(joined, output_, products_);
}

Tensor BlockLayerImpl::forward(const Tensor& slots, const Tensor& states,
                               const BlockPlaces& places) {
  const torch::ScalarType type = type_of(products_, slots);
  const Tensor attended =
      stream_sum(slots, attend(input_norm_->forward(slots, type), states.to(type), places));
  const Tensor read = output_norm_->forward(attended, type);
  const Tensor inner =
      silu_multiply(project(read, gate_, products_), project(read, up_, products_));
  return stream_sum(attended, project(inner, down_, products_));
}

BlockModuleImpl::BlockModuleImpl(const ModelConfig& config, int n_features, Products products)
    : products_(products) {
  fuse_ = register_module("fc", without_bias(n_features * config.dim, config.dim));
  state_norm_ = register_module("hidden_norm", RmsNorm(config.dim, config.norm_epsilon));
  auto layers = register_module("layers", torch::nn::ModuleList());
  for (int i = 0; i < config.n_layers; ++i) {
    layers_.emplace_back(config, products);
    layers->push_back(layers_.back());
  }
  norm_ = register_module("norm", RmsNorm(config.dim, config.norm_epsilon));
}

Tensor BlockModuleImpl::read(const Tensor& features) {
  return state_norm_->forward(project(features, fuse_, products_));
}

Tensor BlockModuleImpl::forward(const Tensor& slots, const Tensor& states,
                                const BlockPlaces& places) {
  Tensor x = slots;
  for (BlockLayer& layer : layers_) x = layer->forward(x, states, places);
  return norm_->forward(x);
}

}  // namespace outrider::train
