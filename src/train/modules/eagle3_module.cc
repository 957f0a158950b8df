// SPDX-License-Identifier: Apache-2.0
#include "train/modules/eagle3_module.h"

#include <fmt/format.h>

#include <limits>

namespace outrider::train {
namespace {

using torch::Tensor;

// A component of parameter names: "layers".
class GroupImpl : public torch::nn::Module {};
TORCH_MODULE(Group);

torch::nn::Linear without_bias(std::int64_t n_in, std::int64_t n_out) {
  return torch::nn::Linear(torch::nn::LinearOptions(n_in, n_out).bias(false));
}

}  // namespace

Eagle3HeadImpl::Eagle3HeadImpl(const ModelConfig& config, Products products, const Tensor& lm_head,
                               const Options& options)
    : config_(config), products_(products) {
  fc_ = register_module("fc", without_bias(3 * config.dim, config.dim));
  midlayer_ = register_module(
      "midlayer", DecoderLayer(config, products,
                               DecoderLayerImpl::Options{.attention_input_width = 2 * config.dim}));
  hidden_norm_ =
      midlayer_->register_module("hidden_norm", RmsNorm(config.dim, config.norm_epsilon));
  if (options.n_layers > 1) {
    auto layers = register_module("layers", Group());
    for (int i = 1; i < options.n_layers; ++i) {
      further_.emplace_back(config, products);
      layers->register_module(fmt::format("{}", i), further_.back());
    }
  }
  norm_ = register_module("norm", RmsNorm(config.dim, config.norm_epsilon));
  lm_head_ = register_module("lm_head", without_bias(config.dim, lm_head.size(0)));
  if (options.has_mask) {
    mask_hidden_ = register_parameter("mask_hidden", torch::empty({1, 1, 3 * config.dim}));
  }
  initialise(*this, options.n_layers);
  const torch::NoGradGuard no_grad;
  lm_head_->weight.copy_(lm_head);
}

Tensor Eagle3HeadImpl::fuse(const Tensor& features) { return project(features, fc_, products_); }

Tensor Eagle3HeadImpl::first_layer(const Tensor& hidden, const Tensor& embeddings,
                                   const Rotation& rotation, const Tensor& mask,
                                   UnrolledKeys& unrolled) {
  const Tensor read = torch::cat(
      {midlayer_->input_layernorm->forward(embeddings), hidden_norm_->forward(hidden)}, -1);
  const Tensor attended =
      stream_sum(hidden, midlayer_->attend_unrolled(read, rotation, mask, unrolled));
  return stream_sum(
      attended, midlayer_->feed_forward(midlayer_->post_attention_layernorm->forward(attended)));
}

Tensor Eagle3HeadImpl::forward(const Tensor& hidden, const Tensor& embeddings, int step,
                               UnrolledKeys& unrolled) {
  const auto n_rows = static_cast<int>(hidden.size(1));
  return first_layer(hidden, embeddings, rotation_of(config_, step, n_rows, hidden.options()),
                     causal_mask(n_rows, hidden.options()), unrolled);
}

Tensor Eagle3HeadImpl::forward_among(const Tensor& hidden, const Tensor& embeddings,
                                     const RowPlaces& places) {
  const Rotation rotation = rotation_at(config_, places.positions, hidden.options());
  const Tensor mask = torch::zeros(places.unseen.sizes(), hidden.options())
                          .masked_fill(places.unseen, -std::numeric_limits<double>::infinity());
  UnrolledKeys unrolled;
  Tensor x = first_layer(hidden, embeddings, rotation, mask, unrolled);
  for (DecoderLayer& layer : further_) x = layer->forward_among(x, rotation, places.unseen);
  return x;
}

Tensor Eagle3HeadImpl::logits(const Tensor& hidden) {
  return project(norm_->forward(hidden), lm_head_, products_);
}

}  // namespace outrider::train
