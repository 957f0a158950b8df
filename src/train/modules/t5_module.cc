// SPDX-License-Identifier: Apache-2.0
#include "train/modules/t5_module.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "io/safetensors/safetensors.h"
#include "train/fused/fused_steps.h"
#include "train/modules/initial_weights.h"
#include "train/training_device.h"

namespace outrider::train {
namespace {

using torch::Tensor;

torch::nn::Linear matrix(int n_in, int n_out) {
  return torch::nn::Linear(torch::nn::LinearOptions(n_in, n_out).bias(false));
}

// A container without a forward of its own: a component of parameter names.
class PartImpl : public torch::nn::Module {};
TORCH_MODULE(Part);

Tensor without_a_share(const Tensor& x, double share) {
  return share > 0 ? torch::dropout(x, share, /*train=*/true) : x;
}

// The softmax of scores (n_texts, n_heads, n_queries, n_keys) over the keys that a query may read.
Tensor shares_of(Tensor scores, const ScoreTerms& terms) {
  if (terms.bias.defined()) scores = scores + terms.bias;
  return terms.causal ? causal_softmax(scores) : torch::softmax(scores, -1);
}

// The weights are initialised like a Llama's, because AdamW moves all of them by the same amount.
// T5's own sizes (1 for the embedding, the inverse root of the input width for matrices) suit
// Adafactor, whose steps scale with the weights (Shazeer and Stern 2018).
void initialise_t5(T5ModuleImpl& model) {
  const T5Config& config = model.config();
  draw_weights(model, [&config](const std::string& name) {
    if (!name.ends_with(".o.weight") && !name.ends_with(".wo.weight")) return 0;
    return name.starts_with("encoder.") ? 2 * config.n_encoder_layers : 3 * config.n_decoder_layers;
  });
}

}  // namespace

int relative_position_bucket(int distance, bool both_ways, int n_buckets, int max_distance) {
  int first = 0;
  if (both_ways) {
    n_buckets /= 2;
    if (distance > 0) first = n_buckets;
    distance = std::abs(distance);
  } else {
    distance = std::max(0, -distance);
  }
  const int n_exact = n_buckets / 2;
  if (distance < n_exact) return first + distance;
  // If the ratio of logarithms is an integer, rounding must not select the bucket before it.
  constexpr double kRounding = 1e-9;
  const double octaves = std::log(static_cast<double>(distance) / n_exact) /
                         std::log(static_cast<double>(max_distance) / n_exact);
  const int above = static_cast<int>(octaves * (n_buckets - n_exact) + kRounding);
  return first + std::min(n_buckets - 1, n_exact + above);
}

T5AttentionImpl::T5AttentionImpl(const T5Config& config, Products products, bool with_positions)
    : config_(config), products_(products) {
  const int width = config.n_heads * config.head_dim;
  query_ = register_module("q", matrix(config.dim, width));
  key_ = register_module("k", matrix(config.dim, width));
  value_ = register_module("v", matrix(config.dim, width));
  output_ = register_module("o", matrix(width, config.dim));
  if (with_positions) {
    position_ = register_module("relative_attention_bias",
                                torch::nn::Embedding(config.n_buckets, config.n_heads));
  }
}

PastKeys T5AttentionImpl::keys_of(const Tensor& rows) {
  const auto heads = [&](const Tensor& x) {
    return x.view({x.size(0), x.size(1), config_.n_heads, config_.head_dim}).transpose(1, 2);
  };
  return {heads(project(rows, key_, products_)), heads(project(rows, value_, products_))};
}

Tensor T5AttentionImpl::forward(const Tensor& input, const PastKeys& keys,
                                const ScoreTerms& terms) {
  const std::int64_t n_texts = input.size(0);
  const std::int64_t n_queries = input.size(1);
  const Tensor query = project(input, query_, products_)
                           .view({n_texts, n_queries, config_.n_heads, config_.head_dim})
                           .transpose(1, 2);
  const Tensor shares = shares_of(torch::matmul(query, keys.keys.transpose(2, 3)), terms);
  const Tensor attended = torch::matmul(shares, keys.values)
                              .transpose(1, 2)
                              .reshape({n_texts, n_queries, config_.n_heads * config_.head_dim});
  return project(attended, output_, products_);
}

Tensor T5AttentionImpl::position_bias(int first, int n_queries, bool both_ways) {
  const int n_keys = first + n_queries;
  std::vector<std::int64_t> buckets;
  buckets.reserve(static_cast<std::size_t>(n_queries) * static_cast<std::size_t>(n_keys));
  for (int query = first; query < n_keys; ++query) {
    for (int key = 0; key < n_keys; ++key) {
      buckets.push_back(relative_position_bucket(key - query, both_ways, config_.n_buckets,
                                                 config_.max_distance));
    }
  }
  const Tensor places = torch::tensor(buckets, torch::kInt64)
                            .view({n_queries, n_keys})
                            .to(position_->weight.device());
  return position_->forward(places).permute({2, 0, 1}).unsqueeze(0);
}

T5FeedForwardImpl::T5FeedForwardImpl(const T5Config& config, Products products)
    : products_(products) {
  gate_ = register_module("wi_0", matrix(config.dim, config.hidden_dim));
  up_ = register_module("wi_1", matrix(config.dim, config.hidden_dim));
  down_ = register_module("wo", matrix(config.hidden_dim, config.dim));
}

Tensor T5FeedForwardImpl::forward(const Tensor& input, double dropout) {
  const Tensor middle =
      torch::gelu(project(input, gate_, products_), "tanh") * project(input, up_, products_);
  return project(without_a_share(middle, dropout), down_, products_);
}

T5ModuleImpl::T5ModuleImpl(const T5Config& config, Products products)
    : config_(config), products_(products) {
  embedding_ = register_module("shared", torch::nn::Embedding(config.vocabulary_size, config.dim));
  const auto norm = [&config] { return RmsNorm(config.dim, config.norm_epsilon); };
  // Each sublayer is a separate part, with a norm and attention or an MLP.
  const auto attention = [&](torch::nn::ModuleList& sublayers, const char* name,
                             bool with_positions, RmsNorm& its_norm, T5Attention& its_attention) {
    Part sublayer;
    its_attention = sublayer->register_module(name, T5Attention(config, products, with_positions));
    its_norm = sublayer->register_module("layer_norm", norm());
    sublayers->push_back(sublayer);
  };
  const auto feed_forward = [&](torch::nn::ModuleList& sublayers, EncoderBlock& layer) {
    Part sublayer;
    layer.feed_forward =
        sublayer->register_module("DenseReluDense", T5FeedForward(config, products));
    layer.feed_forward_norm = sublayer->register_module("layer_norm", norm());
    sublayers->push_back(sublayer);
  };
  const auto begin_block = [](torch::nn::ModuleList& blocks) {
    Part block;
    torch::nn::ModuleList sublayers = block->register_module("layer", torch::nn::ModuleList());
    blocks->push_back(block);
    return sublayers;
  };

  Part encoder = register_module("encoder", Part());
  torch::nn::ModuleList blocks = encoder->register_module("block", torch::nn::ModuleList());
  for (int i = 0; i < config.n_encoder_layers; ++i) {
    EncoderBlock& layer = encoder_.emplace_back();
    auto sublayers = begin_block(blocks);
    attention(sublayers, "SelfAttention", i == 0, layer.attention_norm, layer.attention);
    feed_forward(sublayers, layer);
  }
  encoder_norm_ = encoder->register_module("final_layer_norm", norm());

  Part decoder = register_module("decoder", Part());
  blocks = decoder->register_module("block", torch::nn::ModuleList());
  for (int i = 0; i < config.n_decoder_layers; ++i) {
    DecoderBlock& layer = decoder_.emplace_back();
    auto sublayers = begin_block(blocks);
    attention(sublayers, "SelfAttention", i == 0, layer.attention_norm, layer.attention);
    attention(sublayers, "EncDecAttention", false, layer.cross_norm, layer.cross_attention);
    feed_forward(sublayers, layer);
  }
  decoder_norm_ = decoder->register_module("final_layer_norm", norm());
  head_ = register_module("lm_head", matrix(config.dim, config.vocabulary_size));
}

Tensor T5ModuleImpl::embed(const Tensor& tokens) {
  return without_a_share(embedding_->forward(tokens), share_left_out());
}

Encoded T5ModuleImpl::encode(const Tensor& tokens, const Tensor& n_in_texts) {
  const auto n_tokens = static_cast<int>(tokens.size(1));
  const double dropout = share_left_out();
  Tensor x = embed(tokens);
  Encoded encoded;
  Tensor bias = encoder_.front().attention->position_bias(0, n_tokens, true);
  const Tensor places = torch::arange(n_tokens, n_in_texts.options()).unsqueeze(0);
  const Tensor padding = places >= n_in_texts.unsqueeze(1);
  if (padding.any().item<bool>()) {
    encoded.mask = torch::zeros(padding.sizes(), x.options())
                       .masked_fill(padding, -std::numeric_limits<double>::infinity())
                       .view({-1, 1, 1, n_tokens});
    bias = bias + encoded.mask;
  }
  const ScoreTerms terms{.bias = bias};
  for (EncoderBlock& layer : encoder_) {
    const Tensor read = layer.attention_norm->forward(x);
    const Tensor attended = layer.attention->forward(read, layer.attention->keys_of(read), terms);
    x = x + without_a_share(attended, dropout);
    const Tensor added = layer.feed_forward->forward(layer.feed_forward_norm->forward(x), dropout);
    x = x + without_a_share(added, dropout);
  }
  encoded.rows = without_a_share(encoder_norm_->forward(x), dropout);
  return encoded;
}

Tensor T5ModuleImpl::decode(const Tensor& tokens, const Encoded& encoded, T5Past* past) {
  const auto n_tokens = static_cast<int>(tokens.size(1));
  const double dropout = share_left_out();
  const int n_past =
      past == nullptr || past->own.empty() ? 0 : static_cast<int>(past->own.front().keys.size(2));
  if (past != nullptr && n_past == 0) {
    past->own.resize(decoder_.size());
    for (DecoderBlock& layer : decoder_) {
      past->encoders.push_back(layer.cross_attention->keys_of(encoded.rows));
    }
  }
  const ScoreTerms own{.bias = decoder_.front().attention->position_bias(n_past, n_tokens, false),
                       .causal = true};
  const ScoreTerms cross{.bias = encoded.mask};
  Tensor x = embed(tokens);
  for (std::size_t i = 0; i < decoder_.size(); ++i) {
    DecoderBlock& layer = decoder_[i];
    const Tensor read = layer.attention_norm->forward(x);
    PastKeys keys = layer.attention->keys_of(read);
    if (past != nullptr) {
      PastKeys& before = past->own[i];
      if (before.keys.defined()) {
        keys = {torch::cat({before.keys, keys.keys}, 2),
                torch::cat({before.values, keys.values}, 2)};
      }
      before = keys;
    }
    x = x + without_a_share(layer.attention->forward(read, keys, own), dropout);
    const Tensor asked = layer.cross_norm->forward(x);
    const Tensor answered = layer.cross_attention->forward(
        asked, past != nullptr ? past->encoders[i] : layer.cross_attention->keys_of(encoded.rows),
        cross);
    x = x + without_a_share(answered, dropout);
    const Tensor added = layer.feed_forward->forward(layer.feed_forward_norm->forward(x), dropout);
    x = x + without_a_share(added, dropout);
  }
  return without_a_share(decoder_norm_->forward(x), dropout);
}

Tensor T5ModuleImpl::logits(const Tensor& features) { return project(features, head_, products_); }

std::vector<std::vector<TokenId>> answer_greedily(T5Module& model, const Tensor& tokens,
                                                  const Tensor& n_in_texts, int max_tokens,
                                                  std::span<const TokenId> never) {
  const torch::NoGradGuard no_grad;
  const bool was_training = model->is_training();
  model->eval();
  const auto n_texts = static_cast<std::size_t>(tokens.size(0));
  std::vector<std::vector<TokenId>> answers(n_texts);
  std::vector<bool> ended(n_texts, false);
  const Encoded encoded = model->encode(tokens, n_in_texts);
  Tensor unsaid;
  if (!never.empty()) {
    const std::vector<std::int64_t> ids(never.begin(), never.end());
    unsaid = torch::tensor(ids, torch::kInt64).to(tokens.device());
  }
  T5Past past;
  Tensor next = torch::full({tokens.size(0), 1}, model->config().start, tokens.options());
  for (int i = 0; i < max_tokens && std::find(ended.begin(), ended.end(), false) != ended.end();
       ++i) {
    Tensor logits = model->logits(model->decode(next, encoded, &past));
    if (unsaid.defined()) logits.index_fill_(-1, unsaid, -std::numeric_limits<double>::infinity());
    next = logits.argmax(-1);  // the first of equals
    const Tensor listed = next.to(torch::kCPU).contiguous();
    for (std::size_t text = 0; text < n_texts; ++text) {
      if (ended[text]) continue;
      const auto token = static_cast<TokenId>(listed.data_ptr<std::int64_t>()[text]);
      ended[text] = token == model->config().end;
      if (!ended[text]) answers[text].push_back(token);
    }
  }
  model->train(was_training);
  return answers;
}

T5Module make_t5(const T5Config& config, Products products, const std::filesystem::path& init,
                 std::uint64_t seed) {
  torch::manual_seed(seed);
  T5Module model(config, products);
  if (init.empty()) {
    initialise_t5(*model);
  } else {
    load_parameters(*model, *open_safetensors_directory(init));
  }
  model->to(training_device());
  return model;
}

}  // namespace outrider::train
