// SPDX-License-Identifier: Apache-2.0
#include "train/modules/t5_config.h"

#include <fmt/format.h>

#include <string>

#include "outrider/error.h"
#include "train/output/model_directory.h"

namespace outrider::train {
namespace {

constexpr const char* kOperation = "read model";
// Larger values occur in no model, and their products might overflow.
constexpr int kMaxOfAnything = 1 << 24;

class Keys {
 public:
  explicit Keys(const std::filesystem::path& directory)
      : file_(directory / "config.json"), json_(read_json(file_)) {}

  int count(const char* key, int least) const {
    const auto found = json_.find(key);
    const bool fits = found != json_.end() && found->is_number_integer() && *found >= least &&
                      *found <= kMaxOfAnything;
    if (!fits) fail(key, fmt::format("a number from {} to {}", least, kMaxOfAnything));
    return found->get<int>();
  }
  int count_or(const char* key, int least, int value) const {
    const bool is_there = json_.contains(key) && !json_[key].is_null();
    return is_there ? count(key, least) : value;
  }
  TokenId token_or(const char* key, int n_tokens, TokenId value) const {
    const TokenId id = count_or(key, 0, value);
    if (id >= n_tokens) {
      throw Error(kOperation, named(key), fmt::format("a token below {} (vocab_size)", n_tokens),
                  fmt::format("{}", id));
    }
    return id;
  }
  bool has(const char* key) const { return json_.contains(key); }
  void require(const char* key, const nlohmann::ordered_json& value) const {
    if (!json_.contains(key) || json_[key] != value) fail(key, value.dump());
  }
  double epsilon() const {
    constexpr const char* kKey = "layer_norm_epsilon";
    if (!json_.contains(kKey)) return T5Config().norm_epsilon;
    if (!json_[kKey].is_number() || json_[kKey] <= 0) fail(kKey, "a number above 0");
    return json_[kKey].get<double>();
  }

 private:
  [[noreturn]] void fail(const char* key, const std::string& expected) const {
    throw Error(kOperation, named(key), expected, json_.contains(key) ? json_[key].dump() : "none");
  }
  std::string named(const char* key) const { return fmt::format("{} in {}", key, file_.string()); }

  std::filesystem::path file_;
  nlohmann::ordered_json json_;
};

}  // namespace

nlohmann::ordered_json t5_config_json(const T5Config& config, ElementType type, double dropout) {
  return {{"architectures", {"T5ForConditionalGeneration"}},
          {"model_type", "t5"},
          {"is_encoder_decoder", true},
          {"vocab_size", config.vocabulary_size},
          {"d_model", config.dim},
          {"d_kv", config.head_dim},
          {"d_ff", config.hidden_dim},
          {"num_heads", config.n_heads},
          {"num_layers", config.n_encoder_layers},
          {"num_decoder_layers", config.n_decoder_layers},
          {"relative_attention_num_buckets", config.n_buckets},
          {"relative_attention_max_distance", config.max_distance},
          {"layer_norm_epsilon", config.norm_epsilon},
          {"feed_forward_proj", "gated-gelu"},
          {"tie_word_embeddings", false},
          {"dropout_rate", dropout},
          {"pad_token_id", config.padding},
          {"decoder_start_token_id", config.start},
          {"eos_token_id", config.end},
          {"torch_dtype", type == ElementType::bf16 ? "bfloat16" : "float32"}};
}

T5Config read_t5_config(const std::filesystem::path& directory) {
  const Keys keys(directory);
  keys.require("model_type", "t5");
  keys.require("feed_forward_proj", "gated-gelu");
  if (keys.has("scale_decoder_outputs")) {
    keys.require("scale_decoder_outputs", false);
  } else {
    keys.require("tie_word_embeddings", false);
  }
  T5Config config;
  config.vocabulary_size = keys.count("vocab_size", 1);
  config.dim = keys.count("d_model", 1);
  config.head_dim = keys.count("d_kv", 1);
  config.hidden_dim = keys.count("d_ff", 1);
  config.n_heads = keys.count("num_heads", 1);
  config.n_encoder_layers = keys.count("num_layers", 1);
  config.n_decoder_layers = keys.count_or("num_decoder_layers", 1, config.n_encoder_layers);
  config.n_buckets = keys.count_or("relative_attention_num_buckets", 4, config.n_buckets);
  config.max_distance = keys.count_or("relative_attention_max_distance", 2, config.max_distance);
  config.norm_epsilon = keys.epsilon();
  const int n_tokens = config.vocabulary_size;
  config.padding = keys.token_or("pad_token_id", n_tokens, config.padding);
  config.start = keys.token_or("decoder_start_token_id", n_tokens, config.padding);
  config.end = keys.token_or("eos_token_id", n_tokens, config.end);
  return config;
}

}  // namespace outrider::train
