// SPDX-License-Identifier: Apache-2.0
#include "sampling/raw_probs.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>

#include "base/elementary.h"
#include "base/lane_sum.h"
#include "sampling/logit_blocks.h"
#include "sampling/row_kernels.h"

namespace outrider {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The sum of e^(logit - largest), in the order of raw_distribution().
double sum_of_weights(std::span<const float> logits, float largest) {
  // In chunks that stay in L1 between steps.
  constexpr std::size_t kChunk = 512;
  static_assert(kChunk % LaneSum::kLanes == 0);
  std::array<double, kChunk> weights;
  LaneSum total;
  for (std::size_t first = 0; first < logits.size(); first += kChunk) {
    const std::size_t n = std::min(kChunk, logits.size() - first);
    softmax_weights({.logits = logits.data() + first,
                     .n = static_cast<int>(n),
                     .largest = largest,
                     .temperature = 1,
                     .weights = weights.data(),
                     .buckets = nullptr,
                     .buckets_per_unit = 0,
                     .last_bucket = 0});
    total.add_each(n, [&weights](std::size_t i) { return weights[i]; });
  }
  return total.total();
}

}  // namespace

RawProbs::RawProbs(std::span<const float> penalised) : logits_(penalised) {
  thread_local LogitBlocks blocks;
  blocks.scan(penalised);
  largest_ = blocks.largest();
  if (!(largest_ > -kInfinity)) {
    likeliest_ = blocks.likeliest();
  } else if (largest_ < kInfinity) {
    scale_ = 1 / sum_of_weights(penalised, largest_);
  } else {  // those at infinity share all probability
    scale_ = 1 / static_cast<double>(std::count(penalised.begin(), penalised.end(), kInfinity));
  }
}

double RawProbs::prob(TokenId token) const {
  if (likeliest_ != kNoToken) return token == likeliest_ ? 1 : 0;
  const float logit = logits_[static_cast<std::size_t>(token)];
  if (largest_ == kInfinity) return logit == kInfinity ? scale_ : 0;
  const double weight = portable_exp(static_cast<double>(logit) - static_cast<double>(largest_));
  return weight > 0 ? weight * scale_ : 0;  // NaN is not
}

}  // namespace outrider
