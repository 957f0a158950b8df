// SPDX-License-Identifier: Apache-2.0
// A row of logits with the maximum of each block: selects few of many tokens without sorting, and
// reads most of them only once.
#ifndef OUTRIDER_SAMPLING_LOGIT_BLOCKS_H_
#define OUTRIDER_SAMPLING_LOGIT_BLOCKS_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "outrider/types.h"

namespace outrider {

// Rank of a token as one integer: keys are ordered by logit, among equals the lower id has the
// larger key. Not for NaN.
inline std::uint64_t rank_key(float logit, TokenId id) {
  // + 0 makes -0 equal to 0. Positive floats have the order of their bits, negative ones the
  // reverse.
  const auto bits = std::bit_cast<std::uint32_t>(logit + 0.0F);
  const std::uint32_t ordered = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
  return (static_cast<std::uint64_t>(ordered) << 32) | ~static_cast<std::uint32_t>(id);
}

inline float logit_of(std::uint64_t key) {
  const auto ordered = static_cast<std::uint32_t>(key >> 32);
  return std::bit_cast<float>(ordered & 0x80000000u ? ordered & 0x7fffffffu : ~ordered);
}

// Refers to a row that must outlive it. Reused from row to row: allocates only while rows grow. NaN
// is ignored everywhere. Not thread-safe.
class LogitBlocks {
 public:
  // Logits in a block. Finding the tokens above a bar reads the whole of each block that has one:
  // short blocks waste less there, long ones have fewer maxima. Measured on 32k and 128k tokens,
  // sizes 32 to 128 differ by less than the noise.
  static constexpr std::size_t kBlock = 64;

  void scan(std::span<const float> logits);

  std::span<const float> logits() const { return logits_; }
  float largest() const { return largest_; }                 // -infinity if no logit is above that
  std::span<const float> maxima() const { return maxima_; }  // of each block
  // The token of temperature 0: the first with the largest logit. If that is -infinity, the first
  // that is a number, else 0.
  TokenId likeliest() const;

  // Calls visit(id, logit) for every logit of at least bar, ids ascending: efficient for a few of
  // many.
  template <class Visit>
  void for_each_from(float bar, const Visit& visit) const {
    const float* const logits = logits_.data();  // GCC cannot exclude that visit writes to it
    const std::size_t n = logits_.size();
    for (std::size_t block = 0; block < maxima_.size(); ++block) {
      if (!(maxima_[block] >= bar)) continue;
      const std::size_t end = std::min((block + 1) * kBlock, n);
      for (std::size_t i = block * kBlock; i < end; ++i) {
        if (logits[i] >= bar) visit(static_cast<TokenId>(i), logits[i]);
      }
    }
  }
  // Writes the ids of all logits of at least bar to `ids`, ascending, and returns true. If there
  // are more than `max_found`, returns false, and ids are undefined. For any share of the row.
  bool collect_from(float bar, std::size_t max_found, std::vector<TokenId>& ids) const;

  // The key of the k-th largest logit above -infinity; 0, below every key, if there are fewer. O(n)
  // for any k.
  std::uint64_t top_k_cutoff(std::size_t k);

 private:
  std::span<const float> logits_;
  std::vector<float> maxima_;
  float largest_ = 0;
  std::vector<float> ranked_;        // maxima, sorted as far as needed
  std::vector<std::uint64_t> best_;  // keys of candidates for the top k
};

// Bound on the relative error of rough_weight_below (derived there), for rows of up to kMaxWeighed
// and temperatures between these two.
inline constexpr double kRoughError = 0x1p-15;
inline constexpr std::size_t kMaxWeighed = std::size_t{1} << 20;
inline constexpr double kMinWeighedTemperature = 0x1p-10;
inline constexpr double kMaxWeighedTemperature = 0x1p10;

// The approximate sum of e^((logit - largest) / temperature) over the logits below bar, without
// NaN, in single precision; many times faster than exactly. `largest` is the largest of the row,
// and finite. Logits with a weight below e^-80 count as 0.
double rough_weight_below(std::span<const float> logits, float bar, float largest,
                          double temperature);

}  // namespace outrider

#endif  // OUTRIDER_SAMPLING_LOGIT_BLOCKS_H_
