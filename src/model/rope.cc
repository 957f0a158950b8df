// The frequencies of rotary position embedding (Su et al., RoFormer, 2021) and the two ways of
// stretching them that the Llama family uses.
#include <numbers>

#include "base/elementary.h"
#include "model/config.h"

namespace outrider {
namespace {

// Llama 3.1: frequencies whose wavelength is short against the original context stay, long ones are
// divided by the factor, and between the two bounds a linear blend (in original_context /
// wavelength) leads from one to the other.
double llama3_scaled(double frequency, const RopeConfig& rope) {
  const double turns = rope.original_context * frequency / (2 * std::numbers::pi);
  if (turns > rope.high_frequency_factor) return frequency;
  if (turns < rope.low_frequency_factor) return frequency / rope.factor;
  const double kept = (turns - rope.low_frequency_factor) /
                      (rope.high_frequency_factor - rope.low_frequency_factor);
  return (1 - kept) * (frequency / rope.factor) + kept * frequency;
}

}  // namespace

std::vector<double> rope_frequencies(const ModelConfig& config) {
  const RopeConfig& rope = config.rope;
  const double log_theta = portable_log(rope.theta);
  std::vector<double> frequencies(static_cast<std::size_t>(config.head_dim) / 2);
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    // theta^(-2i / head_dim)
    double frequency = portable_exp(-log_theta * (2.0 * static_cast<double>(i)) / config.head_dim);
    switch (rope.scaling) {
      case RopeConfig::Scaling::none:
        break;
      case RopeConfig::Scaling::linear:
        frequency /= rope.factor;
        break;
      case RopeConfig::Scaling::llama3:
        frequency = llama3_scaled(frequency, rope);
        break;
    }
    if (!rope.divisors.empty()) frequency /= static_cast<double>(rope.divisors[i]);
    frequencies[i] = frequency;
  }
  return frequencies;
}

}  // namespace outrider
