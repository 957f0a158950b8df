// SPDX-License-Identifier: Apache-2.0
#include "model/heads/layered_head.h"

#include <fmt/format.h>

#include <algorithm>

#include "outrider/error.h"

namespace outrider {

void LayeredHead::build(const std::function<void(PassBuilder& pass, const Inputs& inputs)>& compose,
                        const Norm* given_norm) {
  PassBuilder pass(parts_.config.dim);
  inputs_ = {.embedding = pass.buffer(parts_.config.dim), .state = pass.buffer(parts_.config.dim)};
  pass.rope(rope_table(parts_.config));
  compose(pass, inputs_);
  pass.end_layers();
  pass.leave_feature(static_cast<int>(parts_.layers.size()), given_norm);
  pass_.emplace(pass.take(), parts_.config, parts_.machine);
}

Footprint LayeredHead::footprint() const {
  Footprint footprint;
  footprint.kernels = parts_.machine.table->name;
  footprint.kv = name_of(parts_.machine.kv);
  footprint.kv_bytes_per_token = pass_->kv_bytes_per_token();
  const auto add = [&](const Matrix& matrix) {
    footprint.weight_bytes += static_cast<std::int64_t>(matrix.packed_bytes());
    footprint.n_parameters += static_cast<std::int64_t>(matrix.n_columns()) * matrix.k();
  };
  for (const DecoderLayer& layer : parts_.layers) {
    for_each_linear(layer, [&](const Linear& linear) { add(linear.matrix); });
    for_each_matrix(layer.latent, add);
    for_each_matrix(layer.experts, add);
  }
  return footprint;
}

void LayeredHead::embed_tokens() {
  if (parts_.embedding == nullptr) {
    parts_.target->embed(tokens_, embeddings_);
    return;
  }
  const auto dim = static_cast<std::size_t>(parts_.config.dim);
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    decode_rows(*parts_.embedding, tokens_[i], 1, std::span(embeddings_).subspan(i * dim, dim));
  }
}

void LayeredHead::forward(std::span<const TokenBlock> blocks, const ForwardRequest& request,
                          ForwardOutput& output) {
  const auto dim = static_cast<std::size_t>(parts_.config.dim);
  if (!request.feature_layers.empty()) {
    throw Error("forward", "feature layers", "none (a head leaves the states it gives)", "some");
  }
  if (!request.skip_layers.empty()) {
    throw Error("forward", "layers left out", "none (a head runs whole)", "some");
  }
  for (const TokenBlock& block : blocks) {
    if (block.features.size() != block.tokens.size() * dim) {
      throw Error("forward", "block",
                  fmt::format("{} numbers of states", block.tokens.size() * dim),
                  fmt::format("{}", block.features.size()));
    }
  }
  pass_->prepare(blocks, request.logits);
  const PassPlan& plan = pass_->plan();
  const auto n_rows = static_cast<std::size_t>(plan.n_rows());
  tokens_.clear();
  for (const TokenBlock& block : blocks) {
    tokens_.insert(tokens_.end(), block.tokens.begin(), block.tokens.end());
  }
  embeddings_.resize(n_rows * dim);
  if (output.features.size() < n_rows * dim) output.features.resize(n_rows * dim);
  embed_tokens();
  if (n_rows > 0) {
    std::copy(embeddings_.begin(), embeddings_.end(), pass_->row(inputs_.embedding, 0));
    float* state = pass_->row(inputs_.state, 0);
    for (const TokenBlock& block : blocks) {
      state = std::copy(block.features.begin(), block.features.end(), state);
    }
  }

  // The stream after the last layer, in the numbering of feature layers.
  const int given[] = {static_cast<int>(parts_.layers.size())};
  pass_->run({.feature_layers = given, .features = output.features.data()});
  asked_states_.clear();
  for (const int row : plan.asked()) {
    const float* state = output.features.data() + static_cast<std::size_t>(row) * dim;
    asked_states_.insert(asked_states_.end(), state, state + dim);
  }
  write_logits(asked_states_, output);
  output.feature_width = parts_.config.dim;
}

}  // namespace outrider
