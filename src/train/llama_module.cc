#include "train/llama_module.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <limits>
#include <utility>

#include "io/safetensors.h"
#include "outrider/error.h"
#include "train/training_device.h"

namespace outrider::train {
namespace {

using torch::Tensor;
using torch::indexing::Slice;

torch::nn::Linear linear(int n_in, int n_out, bool bias) {
  return torch::nn::Linear(torch::nn::LinearOptions(n_in, n_out).bias(bias));
}

// A container without a forward of its own: part of a name, "self_attn" or "mlp".
class GroupImpl : public torch::nn::Module {};
TORCH_MODULE(Group);

// x (..., head_dim) with the halves of a rotated pair apart, as Hugging Face stores them.
Tensor rotate(const Tensor& x, const Rotation& rotation) {
  const auto halves = x.chunk(2, -1);
  return torch::cat({halves[0] * rotation.cosines - halves[1] * rotation.sines,
                     halves[1] * rotation.cosines + halves[0] * rotation.sines},
                    -1);
}

// What products read: where several read the same, it is converted once.
Tensor for_products(const Tensor& x, Products products) {
  return products == Products::full ? x : x.to(torch::kBFloat16);
}

// The product of what for_products() gave, in `type`.
Tensor project(const Tensor& read, torch::ScalarType type, const torch::nn::Linear& linear) {
  if (read.scalar_type() == type) return torch::linear(read, linear->weight, linear->bias);
  const Tensor y = torch::linear(read, linear->weight.to(read.scalar_type())).to(type);
  return linear->bias.defined() ? y + linear->bias : y;
}

}  // namespace

Tensor project(const Tensor& x, const torch::nn::Linear& linear, Products products) {
  return project(for_products(x, products), x.scalar_type(), linear);
}

RmsNormImpl::RmsNormImpl(int dim, double epsilon) : epsilon_(epsilon) {
  weight = register_parameter("weight", torch::ones({dim}));
}

Tensor RmsNormImpl::forward(const Tensor& x) {
  return x * torch::rsqrt(x.square().mean(-1, true) + epsilon_) * weight;
}

Rotation rotation_of(const ModelConfig& config, int first, int n_tokens,
                     const torch::TensorOptions& like) {
  const std::vector<double> frequencies = rope_frequencies(config);
  const Tensor frequency = torch::tensor(frequencies, torch::kFloat64);
  const Tensor position = torch::arange(first, first + n_tokens, torch::kFloat64).unsqueeze(1);
  const Tensor angle = position * frequency;
  return {angle.cos().to(like), angle.sin().to(like)};
}

Tensor causal_mask(int n_past, int n_tokens, const torch::TensorOptions& like) {
  const Tensor all =
      torch::full({n_tokens, n_past + n_tokens}, -std::numeric_limits<double>::infinity(), like);
  return all.triu(n_past + 1);
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
  const Tensor read = for_products(input, products_);
  const auto heads = [&](const torch::nn::Linear& weights, std::int64_t n_heads) {
    return project(read, input.scalar_type(), weights)
        .view({input.size(0), input.size(1), n_heads, config_.head_dim})
        .transpose(1, 2);
  };
  // The scale of the scores is taken where it costs least: there are fewer queries than scores.
  const double scale = 1 / std::sqrt(static_cast<double>(config_.head_dim));
  return {rotate(heads(query_, config_.n_heads), rotation) * scale,
          rotate(heads(key_, config_.n_kv_heads), rotation), heads(value_, config_.n_kv_heads)};
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
  return project(attended.transpose(1, 2).reshape(
                     {attended.size(0), attended.size(2), config_.n_heads * config_.head_dim}),
                 output_, products_);
}

Tensor DecoderLayerImpl::attend(const Tensor& input, const Rotation& rotation, const Tensor& mask,
                                PastKeys* past) {
  auto [query, key, value] = heads_of(input, rotation);
  if (past != nullptr) {
    if (past->keys.defined()) {
      key = torch::cat({past->keys, key}, 2);
      value = torch::cat({past->values, value}, 2);
    }
    past->keys = key;
    past->values = value;
  }
  Tensor scores = product(query, for_all_heads(key).transpose(2, 3));
  if (mask.defined()) scores.add_(mask);  // in place: the largest tensors of a layer
  return joined(product(torch::softmax(scores, -1), for_all_heads(value)));
}

Tensor DecoderLayerImpl::attend_unrolled(const Tensor& input, const Rotation& rotation,
                                         const Tensor& mask, UnrolledKeys& unrolled) {
  const Heads heads = heads_of(input, rotation);
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
  const Tensor read = for_products(input, products_);
  const torch::ScalarType type = input.scalar_type();
  return project(torch::silu(project(read, type, gate_)) * project(read, type, up_), down_,
                 products_);
}

Tensor DecoderLayerImpl::forward(const Tensor& x, const Rotation& rotation, const Tensor& mask,
                                 PastKeys* past) {
  const Tensor input = input_layernorm ? input_layernorm->forward(x) : x;
  const Tensor attended = x + attend(input, rotation, mask, past);
  return attended + feed_forward(post_attention_layernorm->forward(attended));
}

void initialise(torch::nn::Module& module, int n_layers) {
  constexpr double kSpread = 0.02;
  const torch::NoGradGuard no_grad;
  for (auto& parameter : module.named_parameters()) {
    const std::string& name = parameter.key();
    Tensor& values = parameter.value();
    const auto ends_with = [&](std::string_view end) {
      return name.size() >= end.size() &&
             name.compare(name.size() - end.size(), end.size(), end) == 0;
    };
    if (ends_with("norm.weight")) {
      values.fill_(1);
    } else if (ends_with(".bias")) {
      values.zero_();
    } else if (ends_with("o_proj.weight") || ends_with("down_proj.weight")) {
      values.normal_(0, kSpread / std::sqrt(2.0 * n_layers));
    } else {
      values.normal_(0, kSpread);
    }
  }
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
  Tensor x = embed(tokens);
  const Rotation rotation = rotation_of(config_, n_past, n_tokens, x.options());
  const Tensor mask = n_tokens > 1 ? causal_mask(n_past, n_tokens, x.options()) : Tensor();
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    x = layers_[i]->forward(x, rotation, mask, past == nullptr ? nullptr : &(*past)[i]);
  }
  return norm_->forward(x);
}

Tensor LlamaModuleImpl::logits(const Tensor& features) {
  const Tensor& weight = head_ ? head_->weight : embedding_->weight;
  if (products_ == Products::full) return torch::linear(features, weight);
  return torch::linear(features.to(torch::kBFloat16), weight.to(torch::kBFloat16))
      .to(features.scalar_type());
}

LlamaModule make_llama(const ModelConfig& config, Products products,
                       const std::filesystem::path& init, std::uint64_t seed) {
  torch::manual_seed(seed);
  LlamaModule model(config, products);
  if (init.empty()) {
    initialise(*model, config.n_layers);
  } else {
    load_parameters(*model, *open_safetensors_directory(init));
  }
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
