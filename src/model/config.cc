// SPDX-License-Identifier: Apache-2.0
#include "model/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/files/mapped_file.h"
#include "model/config_section.h"
#include "outrider/error.h"

namespace outrider {

void check_config(const ModelConfig& config, std::string_view operation, std::string_view object) {
  const auto fail = [&](std::string_view field, std::string_view expected, std::string_view got) {
    throw Error(operation, object, fmt::format("{} to be {}", field, expected), got);
  };
  const auto bounded = [&](std::string_view field, double value, double least, double most) {
    if (!(value >= least && value <= most)) {
      fail(field, fmt::format("{} to {}", least, most), fmt::format("{}", value));
    }
  };
  // Far above any existing model's. Low enough that products of two of them fit into 64 bits, and a
  // matrix row (n_heads * head_dim at most 2^24) into an int.
  bounded("vocabulary size", config.vocabulary_size, 1, 1 << 24);
  // portable_sincos is accurate up to 2^25 radians, and no frequency exceeds 1 radian per token.
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
  bounded("rotated dimension", config.rotated_dim(), 2, config.head_dim);
  if (config.rotated_dim() % 2 != 0) {
    fail("rotated dimension", "even", fmt::format("{}", config.rotated_dim()));
  }
  bounded("norm epsilon", config.norm_epsilon, 1e-30, 1);

  const RopeConfig& rope = config.rope;
  bounded("rope theta", rope.theta, 1, 1e15);  // below 1, frequencies would exceed 1
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
  if (rope.scaling == RopeConfig::Scaling::yarn) {
    bounded("rope beta_slow", rope.beta_slow, 1e-6, 1e6);
    bounded("rope beta_fast", rope.beta_fast, rope.beta_slow, 1e6);
    bounded("rope original context", rope.original_context, 1, 1 << 24);
    bounded("rope attention_factor", rope.attention_factor, 1e-3, 1e3);
    if (rope.theta == 1) fail("rope theta", "above 1", "1");  // the code divides by its logarithm
  }
  if (rope.scaling == RopeConfig::Scaling::proportional) {
    const int n_pairs = config.rotated_dim() / 2;
    bounded("rope pairs that turn", rope.n_turning, 1, n_pairs);
  }
  if (rope.query_beta != 0) {
    bounded("rope scale of queries", rope.query_beta, 0, 1e3);
    bounded("rope original context", rope.original_context, 1, 1 << 24);
    if (rope.original_context != std::floor(rope.original_context)) {
      fail("rope original context", "a whole number", fmt::format("{}", rope.original_context));
    }
  }
  // It scales only the rotated part, while families apply it to whole scores.
  if (config.rotated_dim() != config.head_dim) {
    bounded("rope attention_factor (yarn), where heads turn in part,", rope.attention_factor, 1, 1);
  }
  const bool is_longrope = rope.scaling == RopeConfig::Scaling::longrope;
  const auto check_divisors = [&](const std::vector<float>& divisors) {
    if (divisors.size() != static_cast<std::size_t>(config.rotated_dim()) / 2) {
      fail("rope divisors", fmt::format("{} numbers", config.rotated_dim() / 2),
           fmt::format("{}", divisors.size()));
    }
    // Published longrope divisors go down to 0.998; portable_sincos allows for 0.5.
    for (const float divisor : divisors) {
      bounded("each rope divisor", divisor, is_longrope ? 0.5 : 1, 1e6);
    }
  };
  if (!rope.divisors.empty() || is_longrope) check_divisors(rope.divisors);
  if (is_longrope) {
    check_divisors(rope.long_divisors);
    bounded("rope original context", rope.original_context, 1, 1 << 24);
    bounded("rope attention_factor", rope.magnitude, 1e-3, 1e3);
  }

  const int last_token = config.vocabulary_size - 1;
  if (config.bos_token != kNoToken) bounded("begin token", config.bos_token, 0, last_token);
  for (const TokenId token : config.end_tokens) bounded("end token", token, 0, last_token);
}

std::optional<UnreadableKeys> unreadable_keys(const ModelConfig& config,
                                              std::span<const int> skip_layers) {
  const auto is_skipped = [&](int layer) {
    return std::binary_search(skip_layers.begin(), skip_layers.end(), layer);
  };
  for (std::size_t layer = 0; layer < config.lenders.size(); ++layer) {
    const int lender = config.lenders[layer];
    if (lender < 0 || !is_skipped(lender) || is_skipped(static_cast<int>(layer))) continue;
    return UnreadableKeys{.layer = static_cast<int>(layer), .lender = lender};
  }
  return std::nullopt;
}

}  // namespace outrider
