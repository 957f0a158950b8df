// SPDX-License-Identifier: Apache-2.0
// The formats of quantised weights: codes (codes.h) with scales (scales.h). A new format is a line
// here, in table.h (WeightKind and its name), and in pack.cc, avx512_vnni.cc and neon_i8mm.cc,
// which instantiate.
//
// Bytes of a block of 16 columns, bits of a weight, and in brackets those in a file if it has
// fewer:
//
//   int8     2 groups   1088   8.5      q8_0
//   int4     1 group     320   5        q4_0, q4_1
//   q2_k     8 groups   1600   3.13     (2.63)
//   q3_k     8 groups   1856   3.63     (3.44)
//   q4_k     8 groups   2368   4.63     (4.5)
//   q5_0     2 groups    704   5.5
//   q5_1     1 group     384   6
//   q5_k     8 groups   2880   5.63     (5.5)
//   q6_k     8 groups   3392   6.63     (6.56)
//   iq4_nl   2 groups    576   4.5
//   iq4_xs   8 groups   2240   4.38     (4.25)
//   mxfp4    1 group     320   5        (4.25)
//
// Internal linkage, as everything compiled with instruction-set flags.
#ifndef OUTRIDER_KERNELS_FORMATS_BLOCK_FORMATS_H_
#define OUTRIDER_KERNELS_FORMATS_BLOCK_FORMATS_H_

#include <cstddef>
#include <cstdint>

#include "kernels/formats/codes.h"
#include "kernels/formats/scales.h"
#include "kernels/layout.h"
#include "kernels/table.h"

namespace outrider::kernels {
namespace {

// The layout of a tile: block after block. Each has the codes of kTheGroups groups, then their
// sub-scales, then the data that the block has once, and zeros up to a whole line. A last block may
// have groups beyond k, which are zero.
template <WeightKind kTheKind, class TheCodes, class TheScales, int kTheGroups>
struct BlockFormat {
  using Codes = TheCodes;
  using Scales = TheScales;
  static constexpr WeightKind kKind = kTheKind;
  static constexpr int kGroups = kTheGroups;
  static constexpr std::size_t kScalesAt = kTheGroups * Codes::kBytes;
  static constexpr std::size_t kBlockScalesAt = kScalesAt + kTheGroups * Scales::kGroupBytes;
  static constexpr std::size_t kBlockBytes =
      (kBlockScalesAt + Scales::kBlockBytes + kLineBytes - 1) / kLineBytes * kLineBytes;
  static_assert(Codes::kBytes % kLineBytes == 0, "a row of quads stays within a line");

  static std::size_t tile_bytes(int k) {
    return static_cast<std::size_t>((group_count(k) + kGroups - 1) / kGroups) * kBlockBytes;
  }
  static std::size_t block_at(int group) {
    return static_cast<std::size_t>(group / kGroups) * kBlockBytes;
  }
  static std::size_t weights_at(int group) {
    return block_at(group) + static_cast<std::size_t>(group % kGroups) * Codes::kBytes;
  }
  static std::size_t scales_at(int group) {
    return block_at(group) + kScalesAt +
           static_cast<std::size_t>(group % kGroups) * Scales::kGroupBytes;
  }
  static std::size_t block_scales_at(int group) { return block_at(group) + kBlockScalesAt; }

  // A group's share of its block, for prefetching.
  static constexpr std::size_t kReadBytes = kBlockBytes / kGroups;
  static std::size_t read_at(int group) {
    return kGroups <= 2 ? weights_at(group)
                        : block_at(group) + static_cast<std::size_t>(group % kGroups) * kReadBytes;
  }
};

// Twice the values of a 4-bit float: sign, two bits of exponent, one of mantissa.
struct TwiceFloatsOfFourBits {
  static constexpr std::int8_t kValues[16] = {0, 1,  2,  3,  4,  6,  8,  12,
                                              0, -1, -2, -3, -4, -6, -8, -12};
};
struct NonLinearValues {
  static constexpr std::int8_t kValues[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                              1,    13,   25,  38,  53,  69,  89,  113};
};

using Int8 = BlockFormat<WeightKind::int8, WholeBytes, F16Scale, 2>;
using Int4 = BlockFormat<WeightKind::int4, FourBits<0>, F16ScaleAndMinimum, 1>;
using Q2K = BlockFormat<WeightKind::q2_k, TwoBits<0>, BlockScales<2, false, 15, true>, 8>;
using Q3K = BlockFormat<WeightKind::q3_k, ThreeBits<4>, BlockScales<2, true, 32, false>, 8>;
using Q4K = BlockFormat<WeightKind::q4_k, FourBits<0>, BlockScales<1, false, 63, true>, 8>;
using Q50 = BlockFormat<WeightKind::q5_0, FiveBits<16>, F16Scale, 2>;
using Q51 = BlockFormat<WeightKind::q5_1, FiveBits<0>, F16ScaleAndMinimum, 1>;
using Q5K = BlockFormat<WeightKind::q5_k, FiveBits<0>, BlockScales<1, false, 63, true>, 8>;
using Q6K = BlockFormat<WeightKind::q6_k, SixBits<32>, BlockScales<2, true, 128, false>, 8>;
using Iq4Nl = BlockFormat<WeightKind::iq4_nl, TableOfSixteen<NonLinearValues>, F16Scale, 2>;
using Iq4Xs = BlockFormat<WeightKind::iq4_xs, TableOfSixteen<NonLinearValues>,
                          BlockScales<1, true, 32, false>, 8>;
using Mxfp4 = BlockFormat<WeightKind::mxfp4, TableOfSixteen<TwiceFloatsOfFourBits>, F32Scale, 1>;

template <class... F>
struct FormatList {};
// Formats of files: with scales of groups (except int8 and int4, for which some tables have special
// products), and with scales of scales.
using GroupFormats = FormatList<Q50, Q51, Iq4Nl, Mxfp4>;
using WholeBlockFormats = FormatList<Q2K, Q3K, Q4K, Q5K, Q6K, Iq4Xs>;

// The format of a kind.
template <WeightKind kKind, class Format, class... Others>
constexpr auto find_format(FormatList<Format, Others...>) {
  if constexpr (Format::kKind == kKind) {
    return Format{};
  } else {
    return find_format<kKind>(FormatList<Others...>{});
  }
}
template <class... F>
constexpr bool is_one_of(FormatList<F...>, WeightKind kind) {
  return ((F::kKind == kind) || ...);
}
constexpr bool is_of_whole_blocks(WeightKind kind) { return is_one_of(WholeBlockFormats{}, kind); }

template <class... A, class... B>
constexpr FormatList<A..., B...> join(FormatList<A...>, FormatList<B...>) {
  return {};
}
using StoredFormats = decltype(join(GroupFormats{}, WholeBlockFormats{}));
template <WeightKind kKind>
using FormatOf = decltype(find_format<kKind>(StoredFormats{}));

}  // namespace
}  // namespace outrider::kernels

#endif  // OUTRIDER_KERNELS_FORMATS_BLOCK_FORMATS_H_
