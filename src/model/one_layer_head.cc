#include "model/one_layer_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "outrider/error.h"

namespace outrider {

OneLayerHead::OneLayerHead(Parts parts)
    : parts_(std::move(parts)),
      layers_({.config = &parts_.config,
               .layers = {&parts_.layer, 1},
               .table = parts_.table,
               .kv = parts_.kv,
               .most_cache_bytes = parts_.most_cache_bytes,
               .n_threads = parts_.n_threads,
               .input_forms = parts_.input_forms}) {}

Footprint OneLayerHead::footprint() const {
  Footprint footprint;
  footprint.kernels = parts_.table->name;
  footprint.kv = name_of(parts_.kv);
  footprint.kv_bytes_per_token = layers_.kv_bytes_per_token();
  const LlamaLayer& layer = parts_.layer;
  for (const Linear* linear : {&layer.query, &layer.key, &layer.value, &layer.output, &layer.gate,
                               &layer.up, &layer.down}) {
    footprint.weight_bytes += static_cast<std::int64_t>(linear->matrix.packed_bytes());
    footprint.n_parameters +=
        static_cast<std::int64_t>(linear->matrix.n_columns()) * linear->matrix.k();
  }
  return footprint;
}

void OneLayerHead::forward(std::span<const TokenBlock> blocks, const ForwardRequest& request,
                           ForwardOutput& output) {
  const auto dim = static_cast<std::size_t>(parts_.config.dim);
  if (!request.feature_layers.empty()) {
    throw Error("forward", "feature layers", "none (a head leaves the states it gives)", "some");
  }
  if (!request.skip_layers.empty()) {
    throw Error("forward", "layers left out", "none (a head has one layer)", "some");
  }
  for (const TokenBlock& block : blocks) {
    if (block.features.size() != block.tokens.size() * dim) {
      throw Error("forward", "block",
                  fmt::format("{} numbers of states", block.tokens.size() * dim),
                  fmt::format("{}", block.features.size()));
    }
  }
  layers_.lay_out(blocks, request.logits);
  const PassPlan& plan = layers_.plan();
  const auto n_rows = static_cast<std::size_t>(plan.n_rows());
  tokens_.clear();
  states_.clear();
  for (const TokenBlock& block : blocks) {
    tokens_.insert(tokens_.end(), block.tokens.begin(), block.tokens.end());
    states_.insert(states_.end(), block.features.begin(), block.features.end());
  }
  embeddings_.resize(n_rows * dim);
  if (output.features.size() < n_rows * dim) output.features.resize(n_rows * dim);
  make_room(plan.n_rows());
  parts_.target->embed(tokens_, embeddings_);

  layers_.begin();
  if (n_rows > 0) {
    run_team(layers_.n_threads(), [&](const Team& team) {
      run(team);
      const Range mine = team.share(plan.n_rows());
      for (std::int64_t i = mine.begin; i < mine.end; ++i) {
        std::copy_n(layers_.x(i), dim, row_of(output.features, i, parts_.config.dim));
      }
    });
  }
  asked_states_.clear();
  for (const int row : plan.asked()) {
    const float* state = row_of(output.features, row, parts_.config.dim);
    asked_states_.insert(asked_states_.end(), state, state + dim);
  }
  write_logits(asked_states_, output);
  output.feature_width = parts_.config.dim;
}

}  // namespace outrider
