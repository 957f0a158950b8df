// SPDX-License-Identifier: Apache-2.0
// The frequencies of rotary position embedding (Su et al., RoFormer, 2021) and their scalings.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/elementary.h"
#include "model/config.h"

namespace outrider {
namespace {

// Llama 3.1: frequencies with wavelengths short against the original context stay, and long ones
// are divided by the factor. Between the bounds it blends linearly in original_context /
// wavelength.
double llama3_scaled(double frequency, const RopeConfig& rope) {
  const double turns = rope.original_context * frequency / (2 * std::numbers::pi);
  if (turns > rope.high_frequency_factor) return frequency;
  if (turns < rope.low_frequency_factor) return frequency / rope.factor;
  const double kept = (turns - rope.low_frequency_factor) /
                      (rope.high_frequency_factor - rope.low_frequency_factor);
  return (1 - kept) * (frequency / rope.factor) + kept * frequency;
}

// The (fractional) index of the pair with this number of turns over the original context.
double pair_of_turns(double turns, const RopeConfig& rope, int width) {
  return width * portable_log(rope.original_context / (turns * 2 * std::numbers::pi)) /
         (2 * portable_log(rope.theta));
}

// Blends linearly, in the pair's index, from pairs that keep their frequency to those that have it
// divided.
double yarn_scaled(double frequency, int pair, const RopeConfig& rope, int width) {
  double first = pair_of_turns(rope.beta_fast, rope, width);
  double last = pair_of_turns(rope.beta_slow, rope, width);
  if (rope.whole_bounds) {
    first = std::floor(first);
    last = std::ceil(last);
  }
  first = std::max(first, 0.0);
  last = std::min(last, width - 1.0);
  if (first == last) last += 0.001;  // as in Hugging Face
  const double divided = std::clamp((pair - first) / (last - first), 0.0, 1.0);
  return frequency / rope.factor * divided + frequency * (1 - divided);
}

}  // namespace

std::vector<double> rope_frequencies(const ModelConfig& config) {
  const RopeConfig& rope = config.rope;
  const double log_theta = portable_log(rope.theta);
  const int width = config.rotated_dim();
  std::vector<double> frequencies(static_cast<std::size_t>(width) / 2);
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    // theta^(-2i / width)
    double frequency = portable_exp(-log_theta * (2.0 * static_cast<double>(i)) / width);
    switch (rope.scaling) {
      case RopeConfig::Scaling::none:
      case RopeConfig::Scaling::longrope:  // given by its divisors
        break;
      case RopeConfig::Scaling::linear:
        frequency /= rope.factor;
        break;
      case RopeConfig::Scaling::llama3:
        frequency = llama3_scaled(frequency, rope);
        break;
      case RopeConfig::Scaling::yarn:
        frequency = yarn_scaled(frequency, static_cast<int>(i), rope, width);
        break;
      case RopeConfig::Scaling::proportional:
        frequency = static_cast<int>(i) < rope.n_turning ? frequency / rope.factor : 0;
        break;
    }
    if (!rope.divisors.empty()) frequency /= static_cast<double>(rope.divisors[i]);
    frequencies[i] = frequency;
  }
  return frequencies;
}

float RopeTable::query_scale(int position) const {
  const int n_contexts = position / original_context;  // the number of whole contexts before it
  return static_cast<float>(1 + query_beta * portable_log(1.0 + n_contexts));
}

RopeTable rope_table(const ModelConfig& config) {
  RopeTable table{.frequencies = rope_frequencies(config),
                  .magnitude = config.rope.magnitude,
                  .query_beta = config.rope.query_beta};
  if (table.query_beta != 0) {
    table.original_context = static_cast<int>(config.rope.original_context);
  }
  if (config.rope.scaling == RopeConfig::Scaling::longrope) {
    ModelConfig of_long = config;
    of_long.rope.divisors = config.rope.long_divisors;
    table.long_frequencies = rope_frequencies(of_long);
    table.original_context = static_cast<int>(config.rope.original_context);
  }
  return table;
}

}  // namespace outrider
