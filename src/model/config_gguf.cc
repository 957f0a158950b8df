#include <fmt/format.h>

#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "model/config.h"
#include "outrider/error.h"

namespace outrider {
namespace {

constexpr std::string_view kOperation = "read config";

// Look-ups of "llama.<key>" whose errors name file and key.
class Metadata {
 public:
  explicit Metadata(const GgufFile& file) : file_(file) {}

  [[noreturn]] void fail(std::string_view key, std::string_view expected,
                         std::string_view got) const {
    throw Error(kOperation, file_.description(), fmt::format("{} to be {}", key, expected), got);
  }

  std::optional<int> whole(const std::string& key) const {
    const std::optional<std::int64_t> value = file_.integer(key);
    if (!value) return std::nullopt;
    if (*value < std::numeric_limits<int>::min() || *value > std::numeric_limits<int>::max()) {
      fail(key, "an integer of at most 31 bits", fmt::format("{}", *value));
    }
    return static_cast<int>(*value);
  }
  int required(const std::string& key) const {
    const std::optional<int> value = whole(key);
    if (!value) fail(key, "there", "no such key");
    return *value;
  }

 private:
  const GgufFile& file_;
};

// The converter of Llama 3.1 writes the scaling as one divisor for each frequency.
std::vector<float> read_divisors(const GgufFile& file, int head_dim) {
  const TensorView* tensor = file.find("rope_freqs.weight");
  if (tensor == nullptr) return {};
  if (tensor->shape.size() != 1 || tensor->shape[0] != head_dim / 2) {
    throw Error(kOperation, file.description(),
                fmt::format("rope_freqs.weight to hold {} numbers", head_dim / 2),
                fmt::format("{} in {} dimensions", tensor->n_elements(), tensor->shape.size()));
  }
  std::vector<float> divisors(static_cast<std::size_t>(head_dim) / 2);
  decode_rows(*tensor, 0, 1, divisors);
  return divisors;
}

RopeConfig read_rope(const GgufFile& file, const Metadata& metadata, int head_dim) {
  RopeConfig rope;
  rope.theta = file.real("llama.rope.freq_base").value_or(rope.theta);
  const int n_rotated = metadata.whole("llama.rope.dimension_count").value_or(head_dim);
  if (n_rotated != head_dim) {
    metadata.fail("llama.rope.dimension_count", fmt::format("the head dimension, {}", head_dim),
                  fmt::format("{}", n_rotated));
  }
  const std::string* kind = file.string("llama.rope.scaling.type");
  // A factor alone means linear scaling; older files have another name for it.
  const std::optional<double> factor = file.real("llama.rope.scaling.factor");
  const std::optional<double> old_factor = file.real("llama.rope.scale_linear");
  if (kind != nullptr && *kind != "none" && *kind != "linear") {
    metadata.fail("llama.rope.scaling.type", "none or linear", *kind);
  }
  if (kind != nullptr ? *kind == "linear" : factor.has_value() || old_factor.has_value()) {
    rope.scaling = RopeConfig::Scaling::linear;
    if (!factor && !old_factor) metadata.fail("llama.rope.scaling.factor", "there", "no such key");
    rope.factor = factor ? *factor : *old_factor;
  }
  rope.divisors = read_divisors(file, head_dim);
  return rope;
}

int read_vocabulary_size(const GgufFile& file, const Metadata& metadata) {
  if (const std::optional<int> size = metadata.whole("llama.vocab_size")) return *size;
  const TensorView* embedding = file.find("token_embd.weight");
  if (embedding == nullptr || embedding->shape.size() != 2) {
    metadata.fail("token_embd.weight", "there as a matrix", "no such tensor");
  }
  if (embedding->shape[0] > std::numeric_limits<int>::max()) {
    metadata.fail("vocabulary size", "at most 31 bits", fmt::format("{}", embedding->shape[0]));
  }
  return static_cast<int>(embedding->shape[0]);
}

}  // namespace

ModelConfig read_config_gguf(const GgufFile& file) {
  const Metadata metadata(file);
  const std::string* architecture = file.string("general.architecture");
  if (architecture == nullptr) metadata.fail("general.architecture", "there", "no such key");
  if (*architecture != "llama") {
    metadata.fail("general.architecture", "one this build knows (llama)", *architecture);
  }
  if (metadata.whole("llama.expert_count").value_or(0) != 0) {
    metadata.fail("llama.expert_count", "0 (mixtures of experts are not supported)",
                  fmt::format("{}", *metadata.whole("llama.expert_count")));
  }

  ModelConfig config;
  config.architecture = *architecture;
  config.vocabulary_size = read_vocabulary_size(file, metadata);
  config.context_length = metadata.required("llama.context_length");
  config.n_layers = metadata.required("llama.block_count");
  config.dim = metadata.required("llama.embedding_length");
  config.n_heads = metadata.required("llama.attention.head_count");
  config.n_kv_heads = metadata.whole("llama.attention.head_count_kv").value_or(config.n_heads);
  config.hidden_dim = metadata.required("llama.feed_forward_length");
  const std::optional<double> epsilon = file.real("llama.attention.layer_norm_rms_epsilon");
  if (!epsilon) metadata.fail("llama.attention.layer_norm_rms_epsilon", "there", "no such key");
  config.norm_epsilon = static_cast<float>(*epsilon);

  if (const std::optional<int> length = metadata.whole("llama.attention.key_length")) {
    config.head_dim = *length;
  } else {
    if (config.n_heads < 1 || config.dim % config.n_heads != 0) {
      metadata.fail("llama.embedding_length",
                    "a multiple of llama.attention.head_count where key_length is not given",
                    fmt::format("{} and {}", config.dim, config.n_heads));
    }
    config.head_dim = config.dim / config.n_heads;
  }
  const int value_length = metadata.whole("llama.attention.value_length").value_or(config.head_dim);
  if (value_length != config.head_dim) {
    metadata.fail("llama.attention.value_length", fmt::format("key_length, {}", config.head_dim),
                  fmt::format("{}", value_length));
  }

  config.rope = read_rope(file, metadata, config.head_dim);
  config.tied_head = file.find("output.weight") == nullptr;
  config.attention_bias = file.find("blk.0.attn_q.bias") != nullptr;
  config.mlp_bias = file.find("blk.0.ffn_gate.bias") != nullptr;
  config.bos_token = metadata.whole("tokenizer.ggml.bos_token_id").value_or(kNoToken);
  // End of sequence, end of turn, end of message: chat models end with any of them.
  for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                          "tokenizer.ggml.eom_token_id"}) {
    if (const std::optional<int> token = metadata.whole(key)) config.end_tokens.push_back(*token);
  }
  check_config(config, kOperation, file.description());
  return config;
}

}  // namespace outrider
