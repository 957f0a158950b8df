// SPDX-License-Identifier: Apache-2.0
#include "model/load/config_source.h"

#include <fmt/format.h>

#include "model/config_section.h"

namespace outrider {
namespace {

int read_head_dim(const ConfigSource& source, const DecoderKeys& keys, const ModelConfig& config) {
  if (const std::optional<int> head_dim = source.whole(keys.head_dim)) return *head_dim;
  if (config.n_heads < 1 || config.dim % config.n_heads != 0) {
    const bool gguf = source.is_gguf();
    const char* const width = gguf ? keys.head_dim.gguf : keys.head_dim.hugging_face;
    source.fail(keys.dim,
                fmt::format("a multiple of {} where {} is not given",
                            gguf ? keys.n_heads.gguf : keys.n_heads.hugging_face,
                            width == nullptr ? "the width of a head" : width),
                fmt::format("{} and {}", config.dim, config.n_heads));
  }
  return config.dim / config.n_heads;
}

void require_activation(const ConfigSource& source, const DecoderDefaults& defaults) {
  if (defaults.activation == nullptr) return;
  const ConfigKey key = {defaults.activation_key, nullptr};
  const std::string activation = source.text(key).value_or(defaults.activation);
  if (activation != defaults.activation) source.fail(key, defaults.activation, activation);
}

int read_hidden_dim(const ConfigSource& source, const DecoderDefaults& defaults, int dim) {
  const std::optional<int> hidden_dim = source.whole(defaults.keys.hidden_dim);
  if (hidden_dim || defaults.widening == 0) return source.required_whole(defaults.keys.hidden_dim);
  // check_config refuses a dim that is invalid or overflows.
  return dim > 0 && dim <= 1 << 20 ? defaults.widening * dim : 1;
}

}  // namespace

ModelConfig read_decoder_config(const ConfigSource& source, const DecoderDefaults& defaults) {
  const DecoderKeys& keys = defaults.keys;
  require_activation(source, defaults);
  ModelConfig config;
  config.architecture = defaults.architecture;
  config.vocabulary_size = source.vocabulary_size();
  config.context_length = defaults.context_length > 0 ? defaults.context_length
                                                      : source.required_whole(keys.context_length);
  config.n_layers =
      defaults.n_layers > 0 ? defaults.n_layers : source.required_whole(keys.n_layers);
  config.dim = source.required_whole(keys.dim);
  config.n_heads = source.required_whole(keys.n_heads);
  config.n_kv_heads = source.whole(keys.n_kv_heads).value_or(config.n_heads);
  config.hidden_dim = read_hidden_dim(source, defaults, config.dim);
  config.norm_epsilon = static_cast<float>(source.required_real(keys.norm_epsilon));
  config.head_dim = read_head_dim(source, keys, config);
  const int value_length = source.whole(keys.value_dim).value_or(config.head_dim);
  if (value_length != config.head_dim) {
    source.fail(keys.value_dim, fmt::format("key_length, {}", config.head_dim),
                fmt::format("{}", value_length));
  }
  config.tied_head = source.has_tied_head(defaults.tied_head);
  // An invalid head dimension must not size anything.
  const std::string description = source.description();
  check_config(config, kReadConfig, description);
  if (defaults.has_rope) {
    config.rotary_dim = source.rotary_dim(defaults.rope, config.head_dim);
    check_config(config, kReadConfig, description);
    config.rope = source.rope(defaults.rope, config.rotated_dim());
    check_config(config, kReadConfig, description);
  }
  if (defaults.has_special_tokens) {
    source.read_special_tokens(config);
    check_config(config, kReadConfig, description);
  }
  return config;
}

}  // namespace outrider
