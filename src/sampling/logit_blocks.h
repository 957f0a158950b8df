// A row of logits with the largest of each block: what selects few of many tokens without sorting
// them, or looking at most of them twice.
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

// "Likelier" as one integer: the order of keys is that of logits, among equals the lower id first.
// Never asked of NaN.
inline std::uint64_t rank_key(float logit, TokenId id) {
  // + 0 makes -0 equal to 0. Positive floats order as their bits do, negative ones the other way.
  const auto bits = std::bit_cast<std::uint32_t>(logit + 0.0F);
  const std::uint32_t ordered = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
  return (static_cast<std::uint64_t>(ordered) << 32) | ~static_cast<std::uint32_t>(id);
}

inline float logit_of(std::uint64_t key) {
  const auto ordered = static_cast<std::uint32_t>(key >> 32);
  return std::bit_cast<float>(ordered & 0x80000000u ? ordered & 0x7fffffffu : ~ordered);
}

// Looks at a row that outlives it. Reused from row to row: allocates only while rows grow. NaN is
// passed over everywhere. Not thread-safe.
class LogitBlocks {
 public:
  // Logits in a block. A walk over the tokens above a bar looks at all of each block that holds
  // one: short blocks waste less there, long ones make fewer maxima. Measured on 32k and 128k
  // tokens, 32 to 128 differ by less than the noise.
  static constexpr std::size_t kBlock = 64;

  void scan(std::span<const float> logits);

  std::span<const float> logits() const { return logits_; }
  float largest() const { return largest_; }  // -infinity where no logit is above that
  std::span<const float> maxima() const { return maxima_; }  // of each block
  // The token that temperature 0 takes: the first that has the largest logit; where that is
  // -infinity the first that is a number, else 0.
  TokenId likeliest() const;

  // Calls visit(id, logit) for every logit of at least bar, ids ascending: for a few of many.
  template <class Visit>
  void for_each_from(float bar, const Visit& visit) const {
    const float* const logits = logits_.data();  // visit might write anywhere, for all GCC knows
    const std::size_t n = logits_.size();
    for (std::size_t block = 0; block < maxima_.size(); ++block) {
      if (!(maxima_[block] >= bar)) continue;
      const std::size_t end = std::min((block + 1) * kBlock, n);
      for (std::size_t i = block * kBlock; i < end; ++i) {
        if (logits[i] >= bar) visit(static_cast<TokenId>(i), logits[i]);
      }
    }
  }
  // Fills ids with those of the logits of at least bar, ascending, and returns true; or returns
  // false, and ids may hold anything, where they are more than `most`. For any share of the row.
  bool collect_from(float bar, std::size_t most, std::vector<TokenId>& ids) const;

  // The key of the k-th largest logit above -infinity; 0, which is below every key, where there are
  // fewer. O(n) whatever k.
  std::uint64_t top_k_cutoff(std::size_t k);

 private:
  std::span<const float> logits_;
  std::vector<float> maxima_;
  float largest_ = 0;
  std::vector<float> ranked_;        // maxima by size, as far as they need to be
  std::vector<std::uint64_t> best_;  // keys of candidates for the top k
};

// What rough_weight_below may be off by, as a share of its result (derived there), for rows of up
// to kMostWeighed and temperatures between these two.
inline constexpr double kRoughError = 0x1p-15;
inline constexpr std::size_t kMostWeighed = std::size_t{1} << 20;
inline constexpr double kLeastWeighedTemperature = 0x1p-10;
inline constexpr double kMostWeighedTemperature = 0x1p10;

// The sum of e^((logit - largest) / temperature) over the logits below bar, NaN left out, in single
// precision: roughly, and many times faster than exactly. `largest` is the largest of the row that
// they are from, and finite. A logit that weighs less than e^-80 counts as nothing.
double rough_weight_below(std::span<const float> logits, float bar, float largest,
                          double temperature);

}  // namespace outrider

#endif  // OUTRIDER_SAMPLING_LOGIT_BLOCKS_H_
