// SPDX-License-Identifier: Apache-2.0
#include "model/load/gguf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <variant>

#include "base/elementary.h"
#include "model/config_section.h"
#include "outrider/error.h"

namespace outrider {
namespace {

[[noreturn]] void fail_at(const GgufFile& file, std::string_view key, std::string_view expected,
                          std::string_view got) {
  throw Error(kReadConfig, file.description(), fmt::format("{} to be {}", key, expected), got);
}

// Keys after "<architecture>." that do not change what a decoder computes.
constexpr std::string_view kWithoutMeaning[] = {
    "rope.scaling.finetuned",                // how the model was trained
    "rope.scaling.original_context_length",  // llama3's, whose factors are in rope_freqs.weight
    "tensor_data_layout",
    "vocab_size",
};

bool is_off(const GgufValue& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return *whole == 0;
  if (const auto* real = std::get_if<double>(&value)) return *real == 0;
  if (const auto* flag = std::get_if<bool>(&value)) return !*flag;
  return false;
}

}  // namespace

std::optional<int> whole_of(const GgufFile& file, const std::string& key) {
  const GgufValue* const stored = file.find_metadata(key);
  const auto* const of_layers =
      stored == nullptr ? nullptr : std::get_if<std::vector<std::int64_t>>(stored);
  std::optional<std::int64_t> value;
  if (of_layers != nullptr) {
    // llama.cpp allows one number per layer; if all are equal, that is the number.
    if (of_layers->empty() || std::adjacent_find(of_layers->begin(), of_layers->end(),
                                                 std::not_equal_to<>()) != of_layers->end()) {
      fail_at(file, key, "one number for all layers", "an array of different ones");
    }
    value = of_layers->front();
  } else {
    value = file.integer(key);
  }
  if (!value) return std::nullopt;
  if (*value < std::numeric_limits<int>::min() || *value > std::numeric_limits<int>::max()) {
    fail_at(file, key, "an integer of at most 31 bits", fmt::format("{}", *value));
  }
  return static_cast<int>(*value);
}

GgufConfig::GgufConfig(const GgufFile& file) : file_(file) {
  const std::string* architecture = file.string("general.architecture");
  if (architecture == nullptr) fail_at(file, "general.architecture", "there", "no such key");
  architecture_ = *architecture;
}

std::string GgufConfig::full(const ConfigKey& key) const {
  if (key.gguf == nullptr) return {};
  return *asked_.insert(fmt::format("{}.{}", architecture_, key.gguf)).first;
}

std::optional<int> GgufConfig::whole(const ConfigKey& key) const {
  return key.gguf == nullptr ? std::nullopt : whole_of(file_, full(key));
}

std::optional<double> GgufConfig::real(const ConfigKey& key) const {
  return key.gguf == nullptr ? std::nullopt : file_.real(full(key));
}

std::optional<bool> GgufConfig::flag(const ConfigKey& key) const {
  return key.gguf == nullptr ? std::nullopt : file_.boolean(full(key));
}

std::optional<std::string> GgufConfig::text(const ConfigKey& key) const {
  const std::string* value = key.gguf == nullptr ? nullptr : file_.string(full(key));
  return value == nullptr ? std::nullopt : std::optional(*value);
}

std::optional<std::vector<std::string>> GgufConfig::texts(const ConfigKey& key) const {
  const auto* values = key.gguf == nullptr ? nullptr : file_.strings(full(key));
  return values == nullptr ? std::nullopt : std::optional(*values);
}

std::optional<std::vector<int>> GgufConfig::wholes(const ConfigKey& key) const {
  const auto* values = key.gguf == nullptr ? nullptr : file_.integers(full(key));
  if (values == nullptr) return std::nullopt;
  std::vector<int> numbers;
  for (const std::int64_t value : *values) {
    if (value != static_cast<int>(value)) fail(key, "integers of 31 bits", std::to_string(value));
    numbers.push_back(static_cast<int>(value));
  }
  return numbers;
}

std::optional<std::vector<int>> GgufConfig::of_layers(const ConfigKey& key, int n_layers) const {
  const auto n = static_cast<std::size_t>(n_layers);
  const GgufValue* const value = key.gguf == nullptr ? nullptr : file_.find_metadata(full(key));
  if (value == nullptr) return std::nullopt;
  if (std::holds_alternative<std::int64_t>(*value)) return std::vector<int>(n, *whole(key));
  auto numbers = wholes(key);
  if (numbers->size() != n) {
    fail(key, fmt::format("{} numbers", n), fmt::format("{}", numbers->size()));
  }
  return numbers;
}

std::optional<std::vector<bool>> GgufConfig::flags(const ConfigKey& key) const {
  const GgufValue* const value = key.gguf == nullptr ? nullptr : file_.find_metadata(full(key));
  if (value == nullptr) return std::nullopt;
  const auto* const flags = std::get_if<std::vector<bool>>(value);
  if (flags == nullptr) fail(key, "an array of flags", "something else");
  return *flags;
}

std::optional<std::vector<double>> GgufConfig::reals(const ConfigKey& key) const {
  const auto* values = key.gguf == nullptr ? nullptr : file_.reals(full(key));
  return values == nullptr ? std::nullopt : std::optional(*values);
}

bool GgufConfig::has(const ConfigKey& key) const {
  return key.gguf != nullptr && file_.find_metadata(full(key)) != nullptr;
}

void GgufConfig::fail(const ConfigKey& key, std::string_view expected, std::string_view got) const {
  fail_at(file_, full(key), expected, got);
}

int GgufConfig::vocabulary_size() const {
  if (const std::optional<int> size = whole({nullptr, "vocab_size"})) return *size;
  const TensorView* embedding = file_.find("token_embd.weight");
  if (embedding == nullptr || embedding->shape.size() != 2) {
    fail_at(file_, "token_embd.weight", "there as a matrix", "no such tensor");
  }
  if (embedding->shape[0] > std::numeric_limits<int>::max()) {
    fail_at(file_, "vocabulary size", "at most 31 bits", fmt::format("{}", embedding->shape[0]));
  }
  return static_cast<int>(embedding->shape[0]);
}

// One divisor per frequency; empty without such a tensor.
std::vector<float> GgufConfig::read_divisors(const char* name, int rotated_dim) const {
  const TensorView* tensor = file_.find(name);
  if (tensor == nullptr) return {};
  if (tensor->shape.size() != 1 || tensor->shape[0] != rotated_dim / 2) {
    throw Error(kReadConfig, file_.description(),
                fmt::format("{} to hold {} numbers", name, rotated_dim / 2),
                fmt::format("{} in {} dimensions", tensor->n_elements(), tensor->shape.size()));
  }
  std::vector<float> divisors(static_cast<std::size_t>(rotated_dim) / 2);
  decode_rows(*tensor, 0, 1, divisors);
  return divisors;
}

// The converter writes both lists of factors, and the magnitude that follows from them. llama.cpp
// uses the long ones for all texts if a longer context is requested; this follows transformers.
std::optional<RopeConfig> GgufConfig::read_longrope(RopeConfig rope, int rotated_dim) const {
  constexpr ConfigKey kOriginal = {nullptr, "rope.scaling.original_context_length"};
  rope.divisors = read_divisors("rope_factors_short.weight", rotated_dim);
  rope.long_divisors = read_divisors("rope_factors_long.weight", rotated_dim);
  if (rope.divisors.empty() && rope.long_divisors.empty()) return std::nullopt;
  rope.scaling = RopeConfig::Scaling::longrope;
  rope.original_context = required_whole(kOriginal);
  rope.magnitude = static_cast<float>(real({nullptr, "rope.scaling.attn_factor"}).value_or(1));
  return rope;
}

// The converter marks unrotated pairs by divisors of 1e30.
RopeConfig GgufConfig::read_proportional(RopeConfig rope, int rotated_dim) const {
  constexpr const char* kDivisors = "rope_freqs.weight";
  constexpr float kStill = 1e20F;
  const std::vector<float> divisors = read_divisors(kDivisors, rotated_dim);
  if (divisors.empty()) fail_at(file_, kDivisors, "there as a vector", "no such tensor");
  const auto still = std::find_if(divisors.begin(), divisors.end(),
                                  [](float divisor) { return divisor >= kStill; });
  const bool is_right =
      std::all_of(divisors.begin(), still, [](float divisor) { return divisor == 1; }) &&
      std::all_of(still, divisors.end(), [](float divisor) { return divisor >= kStill; });
  if (!is_right) {
    fail_at(file_, kDivisors, fmt::format("ones, then numbers of at least {}", kStill), "others");
  }
  rope.scaling = RopeConfig::Scaling::proportional;
  rope.n_turning = static_cast<int>(still - divisors.begin());
  return rope;
}

int GgufConfig::original_context() const {
  return whole({nullptr, "rope.scaling.original_context_length"})
      .value_or(required_whole({nullptr, "context_length"}));
}

// llama.cpp multiplies the attention factor by that of the paper.
RopeConfig GgufConfig::read_yarn(RopeConfig rope, std::optional<double> factor) const {
  rope.scaling = RopeConfig::Scaling::yarn;
  if (!factor) fail({nullptr, "rope.scaling.factor"}, "there", "no such key");
  rope.factor = *factor;
  rope.original_context = original_context();
  rope.beta_fast = real({nullptr, "rope.scaling.yarn_beta_fast"}).value_or(rope.beta_fast);
  rope.beta_slow = real({nullptr, "rope.scaling.yarn_beta_slow"}).value_or(rope.beta_slow);
  rope.whole_bounds = flag({nullptr, "rope.scaling.yarn_truncate"}).value_or(true);
  rope.attention_factor = real({nullptr, "rope.scaling.attn_factor"}).value_or(1) *
                          (rope.factor > 1 ? 0.1 * portable_log(rope.factor) + 1 : 1);
  return rope;
}

int GgufConfig::rotary_dim(const RopeKeys& keys, int head_dim) const {
  constexpr ConfigKey kRotated = {nullptr, "rope.dimension_count"};
  const int n_rotated = whole(kRotated).value_or(head_dim);
  if (n_rotated == head_dim) return 0;
  if (keys.share == nullptr) {
    fail(kRotated, fmt::format("the head dimension, {}", head_dim), fmt::format("{}", n_rotated));
  }
  if (n_rotated < 1) fail(kRotated, "at least 1", fmt::format("{}", n_rotated));
  return n_rotated;
}

RopeConfig GgufConfig::rope(const RopeKeys& keys, int rotated_dim) const {
  RopeConfig rope = read_scaling(keys, rotated_dim);
  if (const double beta = real(keys.query_beta).value_or(0); beta != 0) {
    rope.query_beta = beta;
    rope.original_context = original_context();
  }
  return rope;
}

RopeConfig GgufConfig::read_scaling(const RopeKeys& keys, int rotated_dim) const {
  constexpr ConfigKey kKind = {nullptr, "rope.scaling.type"};
  constexpr ConfigKey kFactor = {nullptr, "rope.scaling.factor"};
  RopeConfig rope;
  rope.theta = real(keys.theta).value_or(keys.default_theta);
  if (keys.proportional) return read_proportional(rope, rotated_dim);
  const std::optional<std::string> kind = text(kKind);
  // A factor alone means linear scaling; older files name it differently.
  const std::optional<double> factor = real(kFactor);
  const std::optional<double> old_factor = real({nullptr, "rope.scale_linear"});
  if (!keys.may_be_scaled) return rope;
  if (kind && *kind == "yarn") return read_yarn(rope, factor);
  if (auto longrope = read_longrope(rope, rotated_dim)) return *std::move(longrope);
  if (kind && *kind != "none" && *kind != "linear") {
    fail(kKind, "none, linear, yarn, or longrope with its factors", *kind);
  }
  if (kind ? *kind == "linear" : factor.has_value() || old_factor.has_value()) {
    rope.scaling = RopeConfig::Scaling::linear;
    if (!factor && !old_factor) fail(kFactor, "there", "no such key");
    rope.factor = factor ? *factor : *old_factor;
  }
  // For Llama 3.1 the converter writes the scaling in this form.
  rope.divisors = read_divisors("rope_freqs.weight", rotated_dim);
  return rope;
}

bool GgufConfig::has_tied_head(bool) const { return file_.find("output.weight") == nullptr; }

bool GgufConfig::has_bias(const char*, const char* gguf_tensor) const {
  return file_.find(gguf_tensor) != nullptr;
}

void GgufConfig::read_special_tokens(ModelConfig& config) const {
  // The tokenizer's reader warns about ids outside the vocabulary.
  const auto token_of = [&](const char* key) {
    const int token = whole_of(file_, key).value_or(kNoToken);
    return token < config.vocabulary_size ? std::max(token, kNoToken) : kNoToken;
  };
  config.bos_token = token_of("tokenizer.ggml.bos_token_id");
  config.mask_token = whole_of(file_, "tokenizer.ggml.mask_token_id");
  // End of sequence, end of turn, end of message: a chat model may end with any of them.
  for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                          "tokenizer.ggml.eom_token_id"}) {
    const TokenId token = token_of(key);
    if (token != kNoToken) config.end_tokens.push_back(token);
  }
}

std::optional<TokenId> GgufConfig::start_token() const {
  return whole({nullptr, "decoder_start_token_id"});
}

std::string GgufConfig::description() const { return file_.description(); }

void GgufConfig::refuse_unread() const {
  const std::string prefix = architecture_ + ".";
  for (const auto& [key, value] : file_.metadata()) {
    if (!key.starts_with(prefix) || asked_.contains(key) || is_off(value)) continue;
    const std::string_view rest = std::string_view(key).substr(prefix.size());
    // Keys of a vision part, which some files of text models have.
    if (rest.starts_with("vision.") || rest.starts_with("mm.")) continue;
    if (std::find(std::begin(kWithoutMeaning), std::end(kWithoutMeaning), rest) !=
        std::end(kWithoutMeaning)) {
      continue;
    }
    fail_at(file_, key,
            "absent (this build does not know what it changes in a model of this family)", "there");
  }
}

}  // namespace outrider
