// SPDX-License-Identifier: Apache-2.0
#include "model/families/ministral3.h"

#include <fmt/format.h>

#include "base/elementary.h"
#include "model/load/layer_windows.h"

namespace outrider {
namespace {

constexpr ConfigKey kQueryBeta = {"llama_4_scaling_beta", "attention.temperature_scale"};

// llama.cpp's converter writes just the second of yarn's two weights (mscale_all_dim), and 0 for
// none. The first one is 1.
void read_weight_of_all(const ConfigSource& source, RopeConfig& rope) {
  constexpr ConfigKey kWeight = {nullptr, "rope.scaling.yarn_log_multiplier"};
  const double weight = source.real(kWeight).value_or(0);
  if (!(weight >= 0 && weight <= 100)) {  // far beyond any real one
    source.fail(kWeight, "0 to 100", fmt::format("{}", weight));
  }
  if (rope.factor > 1) rope.attention_factor /= 0.1 * weight * portable_log(rope.factor) + 1;
}

ModelConfig read_ministral3(const ConfigSource& source) {
  ModelConfig config = read_decoder_config(
      source, {.architecture = "ministral3", .rope = {.query_beta = kQueryBeta}});
  if (source.is_gguf()) {
    read_weight_of_all(source, config.rope);
  } else if (config.rope.scaling != RopeConfig::Scaling::yarn) {
    // If config.json has none, transformers uses the 8B model's.
    source.fail({"rope_parameters", nullptr}, "there, with rope_type yarn", "no such scaling");
  }
  // llama.cpp uses the original context, whatever the file says.
  constexpr ConfigKey kLength = {nullptr, "attention.temperature_length"};
  const double original = config.rope.original_context;
  if (const int length = source.whole(kLength).value_or(0); length != 0 && length != original) {
    source.fail(kLength, fmt::format("the original context, {}", original),
                fmt::format("{}", length));
  }
  return config;
}

}  // namespace

Ministral3::Ministral3(const ConfigSource& source)
    : Family(read_ministral3(source)),
      window_(read_window(source, {"sliding_window", nullptr}, 0)) {}

DecoderLayer Ministral3::load_layer(LayerLoader& from, int) const {
  // The converter to GGUF permutes query and key rows as for Llama.
  DecoderLayer loaded = load_llama_layer(from, config(), {.interleaved = from.is_gguf()});
  loaded.attention.window = window_;
  return loaded;
}

}  // namespace outrider
