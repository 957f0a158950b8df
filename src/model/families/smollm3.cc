// SPDX-License-Identifier: Apache-2.0
#include "model/families/smollm3.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "model/load/layer_windows.h"

namespace outrider {
namespace {

ModelConfig read_smollm3(const ConfigSource& source) {
  ModelConfig config = read_decoder_config(
      source, {.architecture = "smollm3", .tied_head = true, .rope = {.default_theta = 2e6}});
  config.attention_bias = source.has_bias("attention_bias", "blk.0.attn_q.bias");
  config.mlp_bias = source.has_bias("mlp_bias", "blk.0.ffn_gate.bias");
  return config;
}

// "no_rope_layers" has a 1 for each layer with RoPE. Without it every fourth layer has none, or as
// no_rope_layer_interval says. GGUF files have neither, and llama.cpp assumes every fourth.
std::vector<bool> read_turns(const ConfigSource& source, int n_layers) {
  constexpr ConfigKey kLayers = {"no_rope_layers", nullptr};
  constexpr ConfigKey kInterval = {"no_rope_layer_interval", nullptr};
  const int interval = source.whole(kInterval).value_or(4);
  if (interval < 1) source.fail(kInterval, "1 or more", fmt::format("{}", interval));
  std::vector<bool> turns;
  turns.reserve(static_cast<std::size_t>(n_layers));
  if (const auto listed = source.wholes(kLayers)) {
    // transformers allows more entries than layers.
    if (listed->size() < static_cast<std::size_t>(n_layers)) {
      source.fail(kLayers, fmt::format("{} numbers", n_layers), fmt::format("{}", listed->size()));
    }
    for (int i = 0; i < n_layers; ++i) {
      const int turned = (*listed)[static_cast<std::size_t>(i)];
      if (turned != 0 && turned != 1) {
        source.fail(kLayers, "numbers 0 or 1", fmt::format("{}", turned));
      }
      turns.push_back(turned == 1);
    }
    return turns;
  }
  for (int i = 1; i <= n_layers; ++i) turns.push_back(i % interval != 0);
  return turns;
}

// A window, if enabled, applies to the layers without RoPE.
std::vector<int> read_smollm3_windows(const ConfigSource& source, const std::vector<bool>& turns) {
  constexpr ConfigKey kWindow = {"sliding_window", nullptr};
  const bool used = source.flag({"use_sliding_window", nullptr}).value_or(false);
  const int named = read_window(source, kWindow, 0);
  const int window = used ? named : 0;
  if (auto listed = read_layer_windows(source, static_cast<int>(turns.size()), named)) {
    return used ? *std::move(listed) : std::vector<int>(turns.size(), 0);
  }
  std::vector<int> windows;
  windows.reserve(turns.size());
  for (const bool turned : turns) windows.push_back(turned ? 0 : window);
  return windows;
}

}  // namespace

SmolLm3::SmolLm3(const ConfigSource& source)
    : Family(read_smollm3(source)),
      turns_(read_turns(source, config().n_layers)),
      windows_(read_smollm3_windows(source, turns_)) {}

DecoderLayer SmolLm3::load_layer(LayerLoader& from, int layer) const {
  const auto at = static_cast<std::size_t>(layer);
  // The converter to GGUF permutes query and key rows as for Llama.
  DecoderLayer loaded = load_llama_layer(from, config(), {.interleaved = from.is_gguf()});
  loaded.attention.window = windows_[at];
  if (!turns_[at]) {
    loaded.attention.rope = kNoRope;
    loaded.attention.scale =
        static_cast<float>(1 / std::sqrt(static_cast<double>(config().head_dim)));
  }
  return loaded;
}

}  // namespace outrider
