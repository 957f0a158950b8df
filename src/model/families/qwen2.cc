// SPDX-License-Identifier: Apache-2.0
#include "model/families/qwen2.h"

#include <algorithm>

#include "model/load/layer_windows.h"

namespace outrider {
namespace {

// transformers' default for the first layer with a window.
constexpr int kDefaultFirstWindowed = 28;

ModelConfig read_qwen2(const ConfigSource& source) {
  ModelConfig config = read_decoder_config(source, {.architecture = "qwen2"});
  config.attention_bias = true;
  return config;
}

}  // namespace

std::vector<int> read_qwen_windows(const ConfigSource& source, int n_layers) {
  const bool used = source.flag({"use_sliding_window", nullptr}).value_or(false);
  const int window = used ? read_window(source, {"sliding_window", nullptr}, 4096)
                          : source.whole({"sliding_window", nullptr}).value_or(0);
  // If the file does not list its layers: those from max_window_layers on.
  const int first = source.whole({"max_window_layers", nullptr}).value_or(kDefaultFirstWindowed);
  const auto layers = read_layer_windows(source, n_layers, used ? window : 0);
  if (layers) return *layers;
  std::vector<int> windows(static_cast<std::size_t>(n_layers));
  for (int i = std::max(first, 0); used && i < n_layers; ++i) {
    windows[static_cast<std::size_t>(i)] = window;
  }
  return windows;
}

Qwen2::Qwen2(const ConfigSource& source)
    : Family(read_qwen2(source)), windows_(read_qwen_windows(source, config().n_layers)) {}

DecoderLayer Qwen2::load_layer(LayerLoader& from, int layer) const {
  DecoderLayer loaded = load_llama_layer(from, config());
  loaded.attention.window = windows_[static_cast<std::size_t>(layer)];
  return loaded;
}

}  // namespace outrider
