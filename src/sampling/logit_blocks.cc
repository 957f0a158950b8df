// SPDX-License-Identifier: Apache-2.0
#include "sampling/logit_blocks.h"

#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include "base/lanes.h"

namespace outrider {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// Independent maxima or sums: four vectors hide the latency of an addition.
constexpr std::size_t kVectors = 4;
constexpr std::size_t kLanes = 4 * kVectors;
static_assert(LogitBlocks::kBlock % kLanes == 0);

Float4 all(float value) { return Float4{value, value, value, value}; }

bool any_set(const Int4& bits) {
  const auto halves = std::bit_cast<std::array<std::uint64_t, 2>>(bits);
  return (halves[0] | halves[1]) != 0;
}

float largest_of(const Float4& lanes) {
  return larger(larger(lanes[0], lanes[1]), larger(lanes[2], lanes[3]));
}

// Per lane 2^y for -126 <= y <= 0, to 2^-18 relative; undefined for other y.
Float4 rough_exp2(const Float4& y) {
  const Float4 shift = all(0x1.8p23F);  // rounds to integers, which end up in the sum's low bits
  const Float4 shifted = y + shift;
  const Float4 f = y - (shifted - shift);
  // The series of 2^f for |f| <= 1/2: terms log(2)^k / k! f^k. The first omitted term is below
  // 0.35^6/6! = 2^-18.7.
  const Float4 f2 = f * f;
  const Float4 c01 = 1.0F + f * 0x1.62e430p-1F;
  const Float4 c23 = 0x1.ebfbe0p-3F + f * 0x1.c6b08ep-5F;
  const Float4 c45 = 0x1.3b2ab6p-7F + f * 0x1.5d87fep-10F;
  const Float4 mantissa = c01 + f2 * (c23 + f2 * c45);
  return std::bit_cast<Float4>(std::bit_cast<Bits4>(mantissa) +
                               (std::bit_cast<Bits4>(shifted) << 23));
}

}  // namespace

void LogitBlocks::scan(std::span<const float> logits) {
  logits_ = logits;
  const std::size_t n_whole = logits.size() / kBlock;
  maxima_.resize((logits.size() + kBlock - 1) / kBlock);
  float largest = kMinusInfinity;
  for (std::size_t block = 0; block < n_whole; ++block) {
    const float* values = logits.data() + block * kBlock;
    Float4 lanes[kVectors] = {all(kMinusInfinity), all(kMinusInfinity), all(kMinusInfinity),
                              all(kMinusInfinity)};
    for (std::size_t i = 0; i < kBlock; i += kLanes) {
      for (std::size_t v = 0; v < kVectors; ++v) {
        lanes[v] = larger(lanes[v], load_lanes<Float4>(values + i + 4 * v));
      }
    }
    maxima_[block] = largest_of(larger(larger(lanes[0], lanes[1]), larger(lanes[2], lanes[3])));
    largest = larger(largest, maxima_[block]);
  }
  if (n_whole < maxima_.size()) {
    float rest = kMinusInfinity;
    for (const float logit : logits.subspan(n_whole * kBlock)) rest = larger(rest, logit);
    maxima_.back() = rest;
    largest = larger(largest, rest);
  }
  largest_ = largest;
}

TokenId LogitBlocks::likeliest() const {
  std::size_t i = 0;
  if (largest_ > kMinusInfinity) {
    const auto block = std::find(maxima_.begin(), maxima_.end(), largest_) - maxima_.begin();
    i = static_cast<std::size_t>(block) * kBlock;
    while (logits_[i] != largest_) ++i;
  } else {
    while (i < logits_.size() && std::isnan(logits_[i])) ++i;
    if (i == logits_.size()) i = 0;
  }
  return static_cast<TokenId>(i);
}

bool LogitBlocks::collect_from(float bar, std::size_t max_found, std::vector<TokenId>& ids) const {
  const float* const logits = logits_.data();
  ids.resize(max_found + kLanes);  // each chunk is written before its count is known
  TokenId* const found = ids.data();
  std::size_t n_found = 0;
  const auto take = [=, &n_found](std::size_t i) {
    // Written always, then counted or not: the branch would be unpredictable.
    found[n_found] = static_cast<TokenId>(i);
    n_found += logits[i] >= bar ? 1 : 0;
  };
  for (std::size_t block = 0; block < maxima_.size(); ++block) {
    if (!(maxima_[block] >= bar)) continue;
    std::size_t i = block * kBlock;
    const std::size_t end = std::min(i + kBlock, logits_.size());
    for (; i + kLanes <= end; i += kLanes) {
      Int4 any = {};
      for (std::size_t v = 0; v < kVectors; ++v) {
        any |= load_lanes<Float4>(logits + i + 4 * v) >= all(bar);
      }
      if (!any_set(any)) continue;
      for (std::size_t lane = 0; lane < kLanes; ++lane) take(i + lane);
      if (n_found > max_found) return false;
    }
    for (; i < end; ++i) take(i);
    if (n_found > max_found) return false;
  }
  ids.resize(n_found);
  return true;
}

std::uint64_t LogitBlocks::top_k_cutoff(std::size_t k) {
  // k blocks with maxima of at least `bar` hold k logits of at least `bar`: the k-th is no smaller.
  float bar = kMinusInfinity;
  if (k <= maxima_.size()) {
    ranked_.assign(maxima_.begin(), maxima_.end());
    const auto kth = ranked_.begin() + static_cast<std::ptrdiff_t>(k - 1);
    std::nth_element(ranked_.begin(), kth, ranked_.end(), std::greater<>());
    bar = *kth;
  }
  // If `bar` does not narrow it enough: one pass that keeps the best k. Buffering k more (at least
  // 256, for small k) makes one selection serve k new candidates.
  const std::size_t capacity = k + std::max<std::size_t>(k, 256);
  best_.clear();
  best_.reserve(std::min(capacity, logits_.size()));
  const auto select = [this, k] {
    const auto kth = best_.begin() + static_cast<std::ptrdiff_t>(k - 1);
    std::nth_element(best_.begin(), kth, best_.end(), std::greater<>());
    best_.resize(k);
    return best_.back();
  };
  std::uint64_t least = 0;  // the least of the best k so far, once there are k
  for_each_from(bar, [&](TokenId id, float logit) {
    if (!(logit > kMinusInfinity)) return;
    const std::uint64_t key = rank_key(logit, id);
    if (key < least) return;
    best_.push_back(key);
    if (best_.size() == capacity) least = select();
  });
  return best_.size() < k ? 0 : select();
}

// Error bound. With x = (logit - largest) / temperature, three roundings put x off by 3 * 2^-24
// |x|, and e^x by the same relative amount. For a part of the row with a share s of its weight, the
// weighted mean of |x| is at most log(n) + log(1/s): e^x is a probability times the row's weight,
// which is at least 1. log(n) <= 14 for kMaxWeighed. rough_exp2 adds 2^-18 = 64 * 2^-24, and the
// additions within a block 8 * 2^-24. Together: 2^-24 (114 + 3 log(1/s)), and log(1/s) < 14 + 80.
double rough_weight_below(std::span<const float> logits, float bar, float largest,
                          double temperature) {
  constexpr std::size_t kBlock = LogitBlocks::kBlock;
  constexpr double kLog2E = 0x1.71547652b82fep+0;
  const auto scale = static_cast<float>(kLog2E / temperature);
  const auto least = static_cast<float>(static_cast<double>(largest) - 80 * temperature);
  double total = 0;
  const auto add = [&](const float* values) {
    Float4 sums[kVectors] = {};
    for (std::size_t i = 0; i < kBlock; i += kLanes) {
      for (std::size_t v = 0; v < kVectors; ++v) {
        const auto lanes = load_lanes<Float4>(values + i + 4 * v);
        const Int4 counts = (lanes < all(bar)) & (lanes > all(least));  // all bits set, or none
        const Float4 weights = rough_exp2((lanes - largest) * scale);
        sums[v] += std::bit_cast<Float4>(std::bit_cast<Int4>(weights) & counts);
      }
    }
    const Float4 sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    total += static_cast<double>((sum[0] + sum[1]) + (sum[2] + sum[3]));
  };
  std::size_t i = 0;
  for (; i + kBlock <= logits.size(); i += kBlock) add(logits.data() + i);
  if (i < logits.size()) {
    float rest[kBlock];
    std::fill(std::begin(rest), std::end(rest), std::numeric_limits<float>::quiet_NaN());
    std::copy(logits.begin() + static_cast<std::ptrdiff_t>(i), logits.end(), rest);
    add(rest);
  }
  return total;
}

}  // namespace outrider
