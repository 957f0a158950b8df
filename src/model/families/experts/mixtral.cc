// SPDX-License-Identifier: Apache-2.0
#include "model/families/experts/mixtral.h"

#include "model/load/layer_windows.h"

namespace outrider {
namespace {

ModelConfig read_mixtral(const ConfigSource& source) {
  ModelConfig config = read_decoder_config(source, {.architecture = "mixtral"});
  read_experts(source, {nullptr, nullptr}, config);
  return config;
}

}  // namespace

bool is_mixtral(const ConfigSource& source) {
  return source.whole({nullptr, "expert_count"}).value_or(0) != 0;
}

Mixtral::Mixtral(const ConfigSource& source)
    : Family(read_mixtral(source)), window_(read_window(source, {"sliding_window", nullptr}, 0)) {}

DecoderLayer Mixtral::load_layer(LayerLoader& from, int) const {
  // The converter to GGUF permutes query and key rows as for Llama.
  DecoderLayer loaded =
      load_llama_layer(from, config(), {.mlp = false, .interleaved = from.is_gguf()});
  loaded.attention.window = window_;
  loaded.experts =
      load_experts(from, config(), ExpertWeights::softmax_used,
                   {.block = "block_sparse_moe.", .gate = "w1", .up = "w3", .down = "w2"});
  return loaded;
}

}  // namespace outrider
