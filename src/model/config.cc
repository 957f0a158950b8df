#include "model/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/mapped_file.h"
#include "model/config_section.h"
#include "outrider/error.h"

namespace outrider {
namespace {

using Json = nlohmann::json;
using Section = ConfigSection;
constexpr std::string_view kOperation = kReadConfig;

void check_architecture(const Section& config) {
  const std::string type = config.text_or("model_type", "");
  if (!type.empty() && type != "llama") {
    config.fail("model_type", "one this build knows (llama)", type);
  }
  if (const Json* names = config.find("architectures")) {
    const bool known =
        names->is_array() && std::any_of(names->begin(), names->end(), [](const Json& name) {
          return name.is_string() && name == "LlamaForCausalLM";
        });
    if (!known) {
      config.fail("architectures", "one this build knows (LlamaForCausalLM)",
                  Section::shown(*names));
    }
  } else if (type.empty()) {
    config.fail("model_type", "there", "no such key");
  }
}

void check_arithmetic(const Section& config) {
  if (const Json* quantization = config.find("quantization_config")) {
    config.fail("quantization_config", "absent (weights as f32, f16 or bf16; or use a GGUF file)",
                Section::shown(*quantization));
  }
  const std::string activation = config.text_or("hidden_act", "silu");
  if (activation != "silu") config.fail("hidden_act", "silu", activation);
}

// Old files have rope_theta beside a rope_scaling that may be null and calls its kind "type"; new
// ones have all of it in rope_parameters and call the kind "rope_type".
RopeConfig read_rope(const Section& config) {
  RopeConfig rope;
  rope.theta = config.real_or("rope_theta", rope.theta);
  const auto require_whole_rotation = [](const Section& section) {
    if (section.real_or("partial_rotary_factor", 1) == 1) return;
    section.fail("partial_rotary_factor", "1",
                 fmt::format("{}", section.real("partial_rotary_factor")));
  };
  require_whole_rotation(config);
  // Where a file has both spellings, the old one decides, as in Hugging Face's reader.
  std::optional<Section> scaling = config.section("rope_scaling");
  if (const auto parameters = config.section("rope_parameters")) {
    rope.theta = parameters->real_or("rope_theta", rope.theta);
    if (!scaling) scaling = parameters;
  }
  if (!scaling) return rope;

  rope.theta = scaling->real_or("rope_theta", rope.theta);
  require_whole_rotation(*scaling);
  const std::string kind = scaling->text_or("rope_type", scaling->text_or("type", "default"));
  if (kind == "linear") {
    rope.scaling = RopeConfig::Scaling::linear;
    rope.factor = scaling->real("factor");
  } else if (kind == "llama3") {
    rope.scaling = RopeConfig::Scaling::llama3;
    rope.factor = scaling->real("factor");
    rope.low_frequency_factor = scaling->real("low_freq_factor");
    rope.high_frequency_factor = scaling->real("high_freq_factor");
    rope.original_context = scaling->real("original_max_position_embeddings");
  } else if (kind != "default") {
    scaling->fail("rope_type", "one of default, linear, llama3", kind);
  }
  return rope;
}

// eos_token_id is an id or a list of ids.
std::vector<TokenId> read_end_tokens(const Section& section) {
  std::vector<TokenId> tokens;
  const Json* value = section.find("eos_token_id");
  if (value == nullptr) return tokens;
  if (!value->is_array()) return {section.whole("eos_token_id", *value)};
  for (const Json& entry : *value) tokens.push_back(section.whole("eos_token_id", entry));
  return tokens;
}

// What all decoders and heads of the family say in the same way.
ModelConfig read_shape(const Section& keys) {
  check_arithmetic(keys);
  ModelConfig config;
  config.architecture = "llama";
  config.vocabulary_size = keys.whole("vocab_size");
  config.context_length = keys.whole("max_position_embeddings");
  config.n_layers = keys.whole("num_hidden_layers");
  config.dim = keys.whole("hidden_size");
  config.n_heads = keys.whole("num_attention_heads");
  config.n_kv_heads = keys.whole_or("num_key_value_heads", config.n_heads);
  config.hidden_dim = keys.whole("intermediate_size");
  config.norm_epsilon = static_cast<float>(keys.real("rms_norm_eps"));
  config.tied_head = keys.flag_or("tie_word_embeddings", false);
  config.attention_bias = keys.flag_or("attention_bias", false);
  config.mlp_bias = keys.flag_or("mlp_bias", false);
  config.rope = read_rope(keys);
  if (keys.find("head_dim") != nullptr) {
    config.head_dim = keys.whole("head_dim");
  } else {
    if (config.n_heads < 1 || config.dim % config.n_heads != 0) {
      keys.fail("hidden_size", "a multiple of num_attention_heads where head_dim is not given",
                fmt::format("{} and {}", config.dim, config.n_heads));
    }
    config.head_dim = config.dim / config.n_heads;
  }

  return config;
}

}  // namespace

ModelConfig read_head_config_json(const std::filesystem::path& directory) {
  const std::filesystem::path file = directory / "config.json";
  const Json json = parse_config(file);
  ModelConfig config = read_shape(Section(json, file.string()));
  check_config(config, kOperation, file.string());
  return config;
}

ModelConfig read_config_json(const std::filesystem::path& directory) {
  const std::filesystem::path file = directory / "config.json";
  const Json json = parse_config(file);
  const Section keys(json, file.string());
  check_architecture(keys);
  ModelConfig config = read_shape(keys);
  check_config(config, kOperation, file.string());

  // Where both files name them, generation_config.json decides, as in Hugging Face's generate().
  config.bos_token = keys.whole_or("bos_token_id", kNoToken);
  config.end_tokens = read_end_tokens(keys);
  const std::filesystem::path generation_file = directory / "generation_config.json";
  if (is_named(generation_file)) {
    const Json generation_json = parse_config(generation_file);
    const Section generation(generation_json, generation_file.string());
    const auto checked = [&](const char* key, TokenId token) {
      if (token < 0 || token >= config.vocabulary_size) {
        generation.fail(key, fmt::format("0 to {}", config.vocabulary_size - 1),
                        fmt::format("{}", token));
      }
      return token;
    };
    if (generation.find("bos_token_id") != nullptr) {
      config.bos_token = checked("bos_token_id", generation.whole("bos_token_id"));
    }
    if (generation.find("eos_token_id") != nullptr) {
      config.end_tokens = read_end_tokens(generation);
      for (const TokenId token : config.end_tokens) checked("eos_token_id", token);
    }
  }
  check_config(config, kOperation, file.string());
  return config;
}

void check_config(const ModelConfig& config, std::string_view operation, std::string_view object) {
  const auto fail = [&](std::string_view field, std::string_view expected, std::string_view got) {
    throw Error(operation, object, fmt::format("{} to be {}", field, expected), got);
  };
  const auto bounded = [&](std::string_view field, double value, double least, double most) {
    if (!(value >= least && value <= most)) {
      fail(field, fmt::format("{} to {}", least, most), fmt::format("{}", value));
    }
  };
  // Far above any model there is, and low enough that no product of two of them overflows 64 bits
  // and no row of a matrix (n_heads * head_dim at most 2^24) overflows an int.
  bounded("vocabulary size", config.vocabulary_size, 1, 1 << 24);
  // portable_sincos is good up to 2^25 radians, and no frequency is above 1 radian a token.
  bounded("context length", config.context_length, 1, 1 << 24);
  bounded("number of layers", config.n_layers, 1, 1 << 12);
  bounded("hidden size", config.dim, 1, 1 << 20);
  bounded("number of attention heads", config.n_heads, 1, 1 << 12);
  bounded("number of key-value heads", config.n_kv_heads, 1, config.n_heads);
  bounded("head dimension", config.head_dim, 2, 1 << 12);
  bounded("feed-forward size", config.hidden_dim, 1, 1 << 22);
  if (config.n_heads % config.n_kv_heads != 0) {
    fail("number of key-value heads", fmt::format("a divisor of {}", config.n_heads),
         fmt::format("{}", config.n_kv_heads));
  }
  if (config.head_dim % 2 != 0) fail("head dimension", "even", fmt::format("{}", config.head_dim));
  bounded("norm epsilon", config.norm_epsilon, 1e-30, 1);

  const RopeConfig& rope = config.rope;
  bounded("rope theta", rope.theta, 1, 1e15);  // below 1 frequencies would exceed 1
  bounded("rope factor", rope.factor, 1, 1e6);
  if (rope.scaling == RopeConfig::Scaling::llama3) {
    bounded("rope low_freq_factor", rope.low_frequency_factor, 1e-6, 1e6);
    bounded("rope high_freq_factor", rope.high_frequency_factor, 1e-6, 1e6);
    bounded("rope original context", rope.original_context, 1, 1 << 24);
    if (rope.low_frequency_factor >= rope.high_frequency_factor) {
      fail("rope low_freq_factor",
           fmt::format("below high_freq_factor {}", rope.high_frequency_factor),
           fmt::format("{}", rope.low_frequency_factor));
    }
  }
  if (!rope.divisors.empty() &&
      rope.divisors.size() != static_cast<std::size_t>(config.head_dim) / 2) {
    fail("rope divisors", fmt::format("{} numbers", config.head_dim / 2),
         fmt::format("{}", rope.divisors.size()));
  }
  for (const float divisor : rope.divisors) bounded("each rope divisor", divisor, 1, 1e6);

  const int last_token = config.vocabulary_size - 1;
  if (config.bos_token != kNoToken) bounded("begin token", config.bos_token, 0, last_token);
  for (const TokenId token : config.end_tokens) bounded("end token", token, 0, last_token);
}

}  // namespace outrider
