// SPDX-License-Identifier: Apache-2.0
#include "train/modules/llama_module.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "io/safetensors/safetensors.h"
#include "model/load/decoder_weights.h"
#include "outrider/error.h"
#include "train/modules/initial_weights.h"
#include "train/training_device.h"

namespace outrider::train {
namespace {

using torch::Tensor;
using torch::indexing::Slice;

torch::nn::Linear linear(int n_in, int n_out, bool bias) {
  return torch::nn::Linear(torch::nn::LinearOptions(n_in, n_out).bias(bias));
}

// A container without a forward of its own: a component of parameter names, "self_attn" or "mlp".
class GroupImpl : public torch::nn::Module {};
TORCH_MODULE(Group);

// For input in the products' type. The result keeps that type, since the fused steps read it and
// widen it themselves.
Tensor project(const Tensor& read, const torch::nn::Linear& linear) {
  if (linear->weight.scalar_type() == read.scalar_type()) {
    return torch::linear(read, linear->weight, linear->bias);
  }
  const Tensor y = torch::linear(read, linear->weight.to(read.scalar_type()));
  return linear->bias.defined() ? (y + linear->bias).to(y.scalar_type()) : y;
}

Tensor without_a_share(const Tensor& x, double share) {
  return share > 0 ? torch::dropout(x, share, /*train=*/true) : x;
}

torch::ScalarType type_of(Products products, const Tensor& stream) {
  return products == Products::full ? stream.scalar_type() : torch::kBFloat16;
}

}  // namespace

Tensor project(const Tensor& x, const torch::nn::Linear& linear, Products products) {
  return project(x.to(type_of(products, x)), linear).to(x.scalar_type());
}

RmsNormImpl::RmsNormImpl(int dim, double epsilon) : epsilon_(epsilon) {
  weight = register_parameter("weight", torch::ones({dim}));
}

Tensor RmsNormImpl::forward(const Tensor& x, torch::ScalarType type) {
  return rms_norm(x, weight, epsilon_, type);
}

Rotation rotation_of(const ModelConfig& config, int first, int n_tokens,
                     const torch::TensorOptions& like) {
  const std::vector<double> frequencies = rope_frequencies(config);
  const Tensor frequency = torch::tensor(frequencies, torch::kFloat64);
  const Tensor position = torch::arange(first, first + n_tokens, torch::kFloat64).unsqueeze(1);
  const Tensor angle = position * frequency;
  return {angle.cos().to(like), angle.sin().to(like)};
}

Rotation rotation_at(const ModelConfig& config, const Tensor& positions,
                     const torch::TensorOptions& like) {
  const auto n_positions = static_cast<int>(positions.max().item<std::int64_t>()) + 1;
  const Rotation all = rotation_of(config, 0, n_positions, like);
  return {all.cosines.index_select(0, positions), all.sines.index_select(0, positions)};
}

Tensor causal_mask(int n_tokens, const torch::TensorOptions& like) {
  const Tensor all =
      torch::full({n_tokens, n_tokens}, -std::numeric_limits<double>::infinity(), like);
  return all.triu(1);
}

DecoderLayerImpl::DecoderLayerImpl(const ModelConfig& config, Products products, Options options)
    : config_(config), products_(products) {
  const int input_width =
      options.attention_input_width > 0 ? options.attention_input_width : config.dim;
  const int query_width = config.n_heads * config.head_dim;
  const int kv_width = config.n_kv_heads * config.head_dim;
  if (options.input_norm) {
    input_layernorm = register_module("input_layernorm", RmsNorm(config.dim, config.norm_epsilon));
  }
  auto attention = register_module("self_attn", Group());
  const bool bias = config.attention_bias;
  query_ = attention->register_module("q_proj", linear(input_width, query_width, bias));
  key_ = attention->register_module("k_proj", linear(input_width, kv_width, bias));
  value_ = attention->register_module("v_proj", linear(input_width, kv_width, bias));
  output_ = attention->register_module("o_proj", linear(query_width, config.dim, bias));
  post_attention_layernorm =
      register_module("post_attention_layernorm", RmsNorm(config.dim, config.norm_epsilon));
  auto mlp = register_module("mlp", Group());
  gate_ = mlp->register_module("gate_proj", linear(config.dim, config.hidden_dim, config.mlp_bias));
  up_ = mlp->register_module("up_proj", linear(config.dim, config.hidden_dim, config.mlp_bias));
  down_ = mlp->register_module("down_proj", linear(config.hidden_dim, config.dim, config.mlp_bias));
}

DecoderLayerImpl::Heads DecoderLayerImpl::heads_of(const Tensor& input, const Rotation& rotation) {
  // The scores' scale is applied where it is cheapest: there are fewer queries than scores.
  const double scale = 1 / std::sqrt(static_cast<double>(config_.head_dim));
  const Tensor value = project(input, value_);
  return {turned_heads(project(input, query_), config_.n_heads, rotation, scale),
          turned_heads(project(input, key_), config_.n_kv_heads, rotation, 1),
          value.view({value.size(0), value.size(1), config_.n_kv_heads, config_.head_dim})
              .transpose(1, 2)};
}

Tensor DecoderLayerImpl::for_all_heads(const Tensor& keys) const {
  const int group = config_.n_heads / config_.n_kv_heads;
  return group > 1 ? keys.repeat_interleave(group, 1) : keys;
}

Tensor DecoderLayerImpl::product(const Tensor& left, const Tensor& right) const {
  if (products_ == Products::full) return torch::matmul(left, right);
  return torch::matmul(left.to(torch::kBFloat16), right.to(torch::kBFloat16))
      .to(left.scalar_type());
}

Tensor DecoderLayerImpl::joined(const Tensor& attended) {
  const Tensor read = attended.transpose(1, 2).reshape(
      {attended.size(0), attended.size(2), config_.n_heads * config_.head_dim});
  return project(read.to(type_of(products_, read)), output_);
}

template <class Shares>
Tensor DecoderLayerImpl::attend(const Tensor& input, const Rotation& rotation, PastKeys* past,
                                const Shares& shares) {
  auto [query, key, value] = heads_of(input, rotation);
  if (past != nullptr) {
    if (past->keys.defined()) {
      key = torch::cat({past->keys, key}, 2);
      value = torch::cat({past->values, value}, 2);
    }
    past->keys = key;
    past->values = value;
  }
  // Queries that share a key-value head are rows of one product.
  const std::int64_t n_tokens = query.size(2);
  const auto grouped = [&](const Tensor& rows) {
    return rows.view({rows.size(0), config_.n_kv_heads, -1, rows.size(3)});
  };
  const auto apart = [&](const Tensor& rows) {
    return rows.view({rows.size(0), config_.n_heads, n_tokens, rows.size(3)});
  };
  const Tensor scores = torch::matmul(grouped(query), key.transpose(2, 3));
  return joined(apart(torch::matmul(grouped(shares(apart(scores))), value)));
}

Tensor DecoderLayerImpl::attend_unrolled(const Tensor& input, const Rotation& rotation,
                                         const Tensor& mask, UnrolledKeys& unrolled) {
  Heads heads = heads_of(input.to(type_of(products_, input)), rotation);
  // Scores of later passes are sums over a head's width instead of products: they are computed in
  // the stream's type from the products' outputs.
  for (Tensor* part : {&heads.query, &heads.key, &heads.value}) {
    *part = part->to(input.scalar_type());
  }
  unrolled.keys.push_back(for_all_heads(heads.key));
  unrolled.values.push_back(for_all_heads(heads.value));
  std::vector<Tensor> scores = {
      product(heads.query, unrolled.keys.front().transpose(2, 3)).add_(mask)};
  for (std::size_t i = 1; i < unrolled.keys.size(); ++i) {
    scores.push_back((heads.query * unrolled.keys[i]).sum(-1, true));
  }
  const Tensor shares = torch::softmax(torch::cat(scores, -1), -1);
  const std::int64_t n_tokens = input.size(1);
  Tensor attended = product(shares.narrow(-1, 0, n_tokens), unrolled.values.front());
  for (std::size_t i = 1; i < unrolled.values.size(); ++i) {
    const std::int64_t column = n_tokens + static_cast<std::int64_t>(i) - 1;
    attended = attended + shares.narrow(-1, column, 1) * unrolled.values[i];
  }
  return joined(attended);
}

Tensor DecoderLayerImpl::feed_forward(const Tensor& input) {
  const Tensor read = input.to(type_of(products_, input));
  return project(silu_multiply(project(read, gate_), project(read, up_)), down_);
}

Tensor DecoderLayerImpl::forward(const Tensor& x, const Rotation& rotation, PastKeys* past,
                                 double dropout) {
  const torch::ScalarType type = type_of(products_, x);
  const Tensor input = input_layernorm ? input_layernorm->forward(x, type) : x.to(type);
  const Tensor attended =
      stream_sum(x, without_a_share(attend(input, rotation, past, causal_softmax), dropout));
  const Tensor added = feed_forward(post_attention_layernorm->forward(attended, type));
  return stream_sum(attended, without_a_share(added, dropout));
}

Tensor DecoderLayerImpl::forward_among(const Tensor& x, const Rotation& rotation,
                                       const Tensor& unseen) {
  const torch::ScalarType type = type_of(products_, x);
  const auto shares = [&](const Tensor& scores) {
    return torch::softmax(scores.masked_fill(unseen, -std::numeric_limits<double>::infinity()), -1);
  };
  const Tensor attended =
      stream_sum(x, attend(input_layernorm->forward(x, type), rotation, nullptr, shares));
  return stream_sum(attended, feed_forward(post_attention_layernorm->forward(attended, type)));
}

void initialise(torch::nn::Module& module, int n_layers) {
  draw_weights(module, [n_layers](const std::string& name) {
    const bool writes = name.ends_with("o_proj.weight") || name.ends_with("down_proj.weight");
    return writes ? 2 * n_layers : 0;
  });
}

LlamaModuleImpl::LlamaModuleImpl(const ModelConfig& config, Products products)
    : config_(config), products_(products) {
  auto trunk = register_module("model", Group());
  embedding_ = trunk->register_module("embed_tokens",
                                      torch::nn::Embedding(config.vocabulary_size, config.dim));
  auto layers = trunk->register_module("layers", torch::nn::ModuleList());
  for (int i = 0; i < config.n_layers; ++i) {
    layers_.emplace_back(config, products);
    layers->push_back(layers_.back());
  }
  norm_ = trunk->register_module("norm", RmsNorm(config.dim, config.norm_epsilon));
  if (!config.tied_head) {
    head_ = register_module("lm_head", linear(config.dim, config.vocabulary_size, false));
  }
}

Tensor LlamaModuleImpl::embed(const Tensor& tokens) { return embedding_->forward(tokens); }

Tensor LlamaModuleImpl::features(const Tensor& tokens, std::vector<PastKeys>* past) {
  const auto n_tokens = static_cast<int>(tokens.size(1));
  int n_past = 0;
  if (past != nullptr) {
    past->resize(layers_.size());
    if (past->front().keys.defined()) n_past = static_cast<int>(past->front().keys.size(2));
  }
  const double dropout = is_training() ? dropout_ : 0;
  Tensor x = without_a_share(embed(tokens), dropout);
  const Rotation rotation = rotation_of(config_, n_past, n_tokens, x.options());
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    x = layers_[i]->forward(x, rotation, past == nullptr ? nullptr : &(*past)[i], dropout);
  }
  return norm_->forward(x);
}

Tensor LlamaModuleImpl::features_among(const Tensor& tokens, const RowPlaces& places) {
  Tensor x = embed(tokens);
  const Rotation rotation = rotation_at(config_, places.positions, x.options());
  for (DecoderLayer& layer : layers_) x = layer->forward_among(x, rotation, places.unseen);
  return norm_->forward(x);
}

Tensor LlamaModuleImpl::product_logits(const Tensor& features) {
  const Tensor& weight = head_ ? head_->weight : embedding_->weight;
  const torch::ScalarType type = type_of(products_, features);
  return torch::linear(features.to(type), weight.to(type));
}

Tensor LlamaModuleImpl::logits(const Tensor& features) {
  return product_logits(features).to(features.scalar_type());
}

Tensor LlamaModuleImpl::token_losses(const Tensor& features, const Tensor& tokens) {
  return cross_entropy_rows(product_logits(features), tokens);
}

LlamaModule make_llama(const ModelConfig& config, Products products,
                       const std::filesystem::path& init, std::uint64_t seed) {
  torch::manual_seed(seed);
  if (init.empty()) {
    LlamaModule model(config, products);
    initialise(*model, config.n_layers);
    model->to(training_device());
    return model;
  }
  const std::unique_ptr<TensorSource> source = open_safetensors_directory(init);
  ModelConfig stored = config;
  stored.tied_head = has_tied_head(*source, config);
  LlamaModule model(stored, products);
  load_parameters(*model, *source);
  model->to(training_device());
  return model;
}

void load_parameters(torch::nn::Module& module, const TensorSource& source) {
  const torch::NoGradGuard no_grad;
  for (auto& parameter : module.named_parameters()) {
    const TensorView* stored = source.find(parameter.key());
    Tensor& values = parameter.value();
    const std::vector<std::int64_t> shape = values.sizes().vec();
    if (stored == nullptr || stored->shape != shape) {
      throw Error("load weights", fmt::format("{} in {}", parameter.key(), source.description()),
                  fmt::format("a tensor of shape [{}]", fmt::join(shape, ", ")),
                  stored == nullptr ? "none" : fmt::format("[{}]", fmt::join(stored->shape, ", ")));
    }
    std::vector<float> decoded(static_cast<std::size_t>(values.numel()));
    decode_rows(*stored, 0, shape.size() > 1 ? shape.front() : 1, decoded);
    values.copy_(torch::from_blob(decoded.data(), shape, torch::kFloat32));
  }
}

}  // namespace outrider::train
