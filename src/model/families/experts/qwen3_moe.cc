// SPDX-License-Identifier: Apache-2.0
#include "model/families/experts/qwen3_moe.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/families/qwen2.h"

namespace outrider {

std::vector<bool> read_layers_with_experts(const ConfigSource& source, int n_layers) {
  constexpr ConfigKey kStep = {"decoder_sparse_step", nullptr};
  const int step = source.whole(kStep).value_or(1);
  if (step < 1) source.fail(kStep, "at least 1", fmt::format("{}", step));
  const std::vector<int> without =
      source.wholes({"mlp_only_layers", nullptr}).value_or(std::vector<int>{});
  std::vector<bool> has_experts;
  for (int i = 0; i < n_layers; ++i) {
    const bool is_listed = std::find(without.begin(), without.end(), i) != without.end();
    has_experts.push_back((i + 1) % step == 0 && !is_listed);
  }
  return has_experts;
}

void note_expert_layers(const std::vector<bool>& has_experts, ModelConfig& config) {
  config.n_expert_layers =
      static_cast<int>(std::count(has_experts.begin(), has_experts.end(), true));
  if (config.n_expert_layers == 0) config.n_experts = config.n_experts_used = config.expert_dim = 0;
}

namespace {

ModelConfig read_qwen3_moe(const ConfigSource& source) {
  ModelConfig config = read_decoder_config(source, {.architecture = "qwen3_moe"});
  config.attention_bias = source.has_bias("attention_bias", "blk.0.attn_q.bias");
  read_experts(source, {"moe_intermediate_size", "expert_feed_forward_length"}, config);
  note_expert_layers(read_layers_with_experts(source, config.n_layers), config);
  return config;
}

}  // namespace

// llama.cpp normalises weights to sum 1 in all files of this family.
Qwen3Moe::Qwen3Moe(const ConfigSource& source)
    : Family(read_qwen3_moe(source)),
      windows_(read_qwen_windows(source, config().n_layers)),
      weights_(read_expert_weights(source, source.is_gguf())),
      has_experts_(read_layers_with_experts(source, config().n_layers)) {}

DecoderLayer Qwen3Moe::load_layer(LayerLoader& from, int layer) const {
  const auto index = static_cast<std::size_t>(layer);
  DecoderLayer loaded = load_llama_layer(from, config(), {.mlp = !has_experts_[index]});
  loaded.attention.window = windows_[index];
  loaded.attention.query_norm =
      load_norm(from, {"self_attn.q_norm", "attn_q_norm"}, config().head_dim);
  loaded.attention.key_norm =
      load_norm(from, {"self_attn.k_norm", "attn_k_norm"}, config().head_dim);
  if (has_experts_[index]) {
    loaded.experts =
        load_experts(from, config(), weights_,
                     {.block = "mlp.", .gate = "gate_proj", .up = "up_proj", .down = "down_proj"});
  }
  return loaded;
}

}  // namespace outrider
