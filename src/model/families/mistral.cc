// SPDX-License-Identifier: Apache-2.0
#include "model/families/mistral.h"

#include "model/load/layer_windows.h"

namespace outrider {
namespace {

// transformers' default if config.json lacks the key; null means no window.
constexpr int kDefaultWindow = 4096;

int read_mistral_window(const ConfigSource& source) {
  constexpr ConfigKey kWindow = {"sliding_window", nullptr};
  return read_window(source, kWindow, source.has(kWindow) ? 0 : kDefaultWindow);
}

}  // namespace

Mistral::Mistral(const ConfigSource& source)
    : Family(read_decoder_config(source, {.architecture = "mistral"})),
      window_(read_mistral_window(source)) {}

DecoderLayer Mistral::load_layer(LayerLoader& from, int) const {
  DecoderLayer loaded = load_llama_layer(from, config());
  loaded.attention.window = window_;
  return loaded;
}

}  // namespace outrider
