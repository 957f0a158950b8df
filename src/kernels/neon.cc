// SPDX-License-Identifier: Apache-2.0
// 64-bit ARM with dot products of bytes (Armv8.2 FEAT_DotProd). If the machine also has matrix
// products of bytes, dispatch.cc replaces the integer products by those of neon_i8mm.cc.
//
// Its bits are tested under emulation (scripts/test-neon). Its speed has not been measured: the
// numbers of rows and tiles together follow from the number of registers, and the prefetch distance
// is that of avx2.cc.
#if defined(__aarch64__)
#include "kernels/algorithms.h"
#include "kernels/vectors/vector_neon.h"

namespace outrider::kernels {
namespace {

// One instruction sums four products of bytes into each 32 bits, with an input's quad from a
// register of four of them. Eight columns (half a tile) at a time: the sums of eight rows take 16
// registers, and sixteen inputs of each 8 more.
struct NeonDots {
  static constexpr int kMaxRows = 8;
  static constexpr int kFixedWayRows = kAnyRows;
  static constexpr std::size_t kOneRowAhead = kPrefetchBytes / 2;

  template <class Codes, int kParts, int R, class Inputs>
  static void dots(const std::byte* weights, const Inputs& inputs, Vector (&dots)[kParts][R]) {
    for (int part = 0; part < kParts; ++part) {
      for (int half = 0; half < 2; ++half) {
        int32x4_t sums[R][2];
        eight<Codes, kParts>(weights + half * (kRowBytes / 2), inputs, part, sums);
        for (int r = 0; r < R; ++r) {
          for (int i = 0; i < 2; ++i)
            dots[part][r].quarter[2 * half + i] = vcvtq_f32_s32(sums[r][i]);
        }
      }
    }
  }

 private:
  // One part's sums of eight columns. Codes are taken as signed; unsigned ones fit too.
  template <class Codes, int kParts, int R, class Inputs>
  [[gnu::always_inline]] static void eight(const std::byte* weights, const Inputs& inputs, int part,
                                           int32x4_t (&sums)[R][2]) {
    static_assert(Codes::kSigned || Codes::kMax < 128);
    for (int r = 0; r < R; ++r) {
      const int off =
          Codes::kOffset == 0 ? 0 : Codes::kOffset * inputs.template sum<kParts>(r, part);
      sums[r][0] = sums[r][1] = vdupq_n_s32(-off);
    }
    constexpr int kSixteens = kGroup / 16 / kParts;
#pragma GCC unroll 2
    for (int i = part * kSixteens; i < (part + 1) * kSixteens; ++i) {
      int8x16_t input[R];
      for (int r = 0; r < R; ++r) input[r] = vld1q_s8(inputs.row(r) + 16 * i);
      add_quad<Codes, 0>(weights, 4 * i, input, sums);
      add_quad<Codes, 1>(weights, 4 * i, input, sums);
      add_quad<Codes, 2>(weights, 4 * i, input, sums);
      add_quad<Codes, 3>(weights, 4 * i, input, sums);
    }
  }

  // Quad first + kLane, which is the inputs' kLane-th.
  template <class Codes, int kLane, int R>
  [[gnu::always_inline]] static void add_quad(const std::byte* weights, int first,
                                              const int8x16_t (&input)[R],
                                              int32x4_t (&sums)[R][2]) {
    for (int i = 0; i < 2; ++i) {
      const int8x16_t weight = vreinterpretq_s8_u8(
          Codes::template quad<BytesNeon>(weights + 16 * i, first + kLane).bytes);
      for (int r = 0; r < R; ++r) {
        sums[r][i] = vdotq_laneq_s32(sums[r][i], weight, input[r], kLane);
      }
    }
  }
};
static_assert(OneTileDots<NeonDots, Vector>);

// The same instruction multiplies words by bytes if a word is two digits to the base 128, each with
// its own sum. Eight columns at a time: the sums of four rows take 16 registers, their digits 8.
struct NeonWords {
  static constexpr KvKind kKind = KvKind::int8;
  using Number = std::int8_t;
  static constexpr int kTogether = 16;
  static constexpr int kDigits = 2;
  static constexpr int kRows = 4;
  static constexpr int vectors(int) { return 1; }

  // The high digits of sixteen words, then the low ones, in the order of cells (kv_layout.h). Words
  // are at most 127 * 128 in magnitude, low digits 0 to 127.
  static void to_digits(const std::int16_t* words, int n, std::int8_t* digits) {
    const std::uint8_t places[16] = {0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15};
    const uint8x16_t order = vld1q_u8(places);
    for (int i = 0; i < n; i += kTogether) {
      const int16x8_t first = vld1q_s16(words + i);
      const int16x8_t second = vld1q_s16(words + i + 8);
      const int16x8_t low_bits = vdupq_n_s16(127);
      const int8x16_t high = vshrn_high_n_s16(vshrn_n_s16(first, 7), second, 7);  // rounded down
      const int8x16_t low =
          vmovn_high_s16(vmovn_s16(vandq_s16(first, low_bits)), vandq_s16(second, low_bits));
      vst1q_s8(digits + 2 * i, vqtbl1q_s8(high, order));
      vst1q_s8(digits + 2 * i + kTogether, vqtbl1q_s8(low, order));
    }
  }

  template <int R, int T, class Rows, class Ahead, class Use>
  static void dots(const std::byte* cells, std::size_t row_bytes, int n, const Rows& rows,
                   const Ahead& ahead, const Use& use) {
    static_assert(T == 1);
    Vector dots[R];
    for (int half = 0; half < 2; ++half) {
      int32x4_t high[R][2];
      int32x4_t low[R][2];
      for (int r = 0; r < R; ++r) {
        for (int i = 0; i < 2; ++i) high[r][i] = low[r][i] = vdupq_n_s32(0);
      }
      const std::byte* at = cells + half * (kLineBytes / 2);
      // Blocks have rows of cells for whole multiples of sixteen; digits beyond n are zero.
      for (int i = 0; i < n; i += kTogether) {
        int8x16_t high_digits[R];
        int8x16_t low_digits[R];
        for (int r = 0; r < R; ++r) {
          high_digits[r] = vld1q_s8(rows.at(r) + 2 * i);
          low_digits[r] = vld1q_s8(rows.at(r) + 2 * i + kTogether);
        }
        if (half == 0) {
          for (int row = 0; row < 4; ++row) {
            ahead.template row<T>(static_cast<std::size_t>(i / 4 + row) * row_bytes);
          }
        }
        add_row<0>(at, high_digits, low_digits, high, low);
        add_row<1>(at + row_bytes, high_digits, low_digits, high, low);
        add_row<2>(at + 2 * row_bytes, high_digits, low_digits, high, low);
        add_row<3>(at + 3 * row_bytes, high_digits, low_digits, high, low);
        at += 4 * row_bytes;
      }
      for (int r = 0; r < R; ++r) {
        for (int i = 0; i < 2; ++i) {
          const int32x4_t sum = vaddq_s32(vshlq_n_s32(high[r][i], 7), low[r][i]);
          dots[r].quarter[2 * half + i] = vcvtq_f32_s32(sum);
        }
      }
    }
    for (int r = 0; r < R; ++r) use(r, 0, dots[r]);
  }

 private:
  template <int kLane, int R>
  [[gnu::always_inline]] static void add_row(const std::byte* at, const int8x16_t (&high_digits)[R],
                                             const int8x16_t (&low_digits)[R],
                                             int32x4_t (&high)[R][2], int32x4_t (&low)[R][2]) {
    for (int i = 0; i < 2; ++i) {
      const int8x16_t cell = vld1q_s8(reinterpret_cast<const std::int8_t*>(at) + 16 * i);
      for (int r = 0; r < R; ++r) {
        high[r][i] = vdotq_laneq_s32(high[r][i], cell, high_digits[r], kLane);
        low[r][i] = vdotq_laneq_s32(low[r][i], cell, low_digits[r], kLane);
      }
    }
  }
};
static_assert(WordDots<NeonWords, Vector>);

}  // namespace

constinit const KernelTable kNeonTable =
    make_table<Vector, TileByTile<Vector, NeonDots>, NeonWords>("neon");

}  // namespace outrider::kernels
#endif  // __aarch64__
