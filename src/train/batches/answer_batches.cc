// SPDX-License-Identifier: Apache-2.0
#include "train/batches/answer_batches.h"

#include <algorithm>
#include <cmath>

namespace outrider::train {
namespace {

// Enough for wide products, few enough that little waits for the longest answer.
constexpr std::size_t kMaxTexts = 64;
// 256 MiB of f32. The encoder holds them three times: as scores, with the position bias, and as
// softmax weights.
constexpr std::size_t kMaxScores = std::size_t{1} << 26;

}  // namespace

std::size_t longest_answered(int n_heads) {
  const std::size_t most = kMaxScores / static_cast<std::size_t>(n_heads);
  auto root = static_cast<std::size_t>(std::sqrt(static_cast<double>(most)));
  return root * root > most ? root - 1 : root;
}

std::size_t n_answered_together(std::span<const std::size_t> lengths, int n_heads) {
  const std::size_t most = kMaxScores / static_cast<std::size_t>(n_heads);
  std::size_t n = 1;
  while (n < std::min(kMaxTexts, lengths.size()) && (n + 1) * lengths[n] * lengths[n] <= most) ++n;
  return n;
}

}  // namespace outrider::train
