#include "model/load/config_source.h"

#include <fmt/format.h>

#include "model/config_section.h"

namespace outrider {
namespace {

constexpr ConfigKey kDim = {"hidden_size", "embedding_length"};
constexpr ConfigKey kHeads = {"num_attention_heads", "attention.head_count"};
constexpr ConfigKey kHeadDim = {"head_dim", "attention.key_length"};

int read_head_dim(const ConfigSource& source, const ModelConfig& config) {
  if (const std::optional<int> head_dim = source.whole(kHeadDim)) return *head_dim;
  if (config.n_heads < 1 || config.dim % config.n_heads != 0) {
    const bool gguf = source.is_gguf();
    source.fail(kDim,
                fmt::format("a multiple of {} where {} is not given",
                            gguf ? kHeads.gguf : kHeads.hugging_face,
                            gguf ? kHeadDim.gguf : kHeadDim.hugging_face),
                fmt::format("{} and {}", config.dim, config.n_heads));
  }
  return config.dim / config.n_heads;
}

}  // namespace

ModelConfig read_decoder_config(const ConfigSource& source, const DecoderDefaults& defaults) {
  const ConfigKey activation_key = {defaults.activation_key, nullptr};
  const std::string activation = source.text(activation_key).value_or(defaults.activation);
  if (activation != defaults.activation) {
    source.fail(activation_key, defaults.activation, activation);
  }
  ModelConfig config;
  config.architecture = defaults.architecture;
  config.vocabulary_size = source.vocabulary_size();
  config.context_length = source.required_whole({"max_position_embeddings", "context_length"});
  config.n_layers = source.required_whole({"num_hidden_layers", "block_count"});
  config.dim = source.required_whole(kDim);
  config.n_heads = source.required_whole(kHeads);
  config.n_kv_heads =
      source.whole({"num_key_value_heads", "attention.head_count_kv"}).value_or(config.n_heads);
  config.hidden_dim = source.required_whole({"intermediate_size", "feed_forward_length"});
  config.norm_epsilon = static_cast<float>(
      source.required_real({"rms_norm_eps", "attention.layer_norm_rms_epsilon"}));
  config.head_dim = read_head_dim(source, config);
  constexpr ConfigKey kValueLength = {nullptr, "attention.value_length"};
  const int value_length = source.whole(kValueLength).value_or(config.head_dim);
  if (value_length != config.head_dim) {
    source.fail(kValueLength, fmt::format("key_length, {}", config.head_dim),
                fmt::format("{}", value_length));
  }
  config.tied_head = source.has_tied_head(defaults.tied_head);
  // A head dimension that is none must not size anything.
  const std::string description = source.description();
  check_config(config, kReadConfig, description);
  config.rotary_dim = source.rotary_dim(defaults.rope, config.head_dim);
  check_config(config, kReadConfig, description);
  config.rope = source.rope(defaults.rope, config.rotated_dim());
  check_config(config, kReadConfig, description);
  if (defaults.has_special_tokens) {
    source.read_special_tokens(config);
    check_config(config, kReadConfig, description);
  }
  return config;
}

}  // namespace outrider
