// SPDX-License-Identifier: Apache-2.0
// The neon table's integer products on machines with matrix products of bytes (FEAT_I8MM). One
// instruction multiplies two columns by two rows of inputs: eight products into each of four sums,
// twice as many as a dot product. A single row gains nothing.
#if defined(__aarch64__)
#include "kernels/algorithms.h"
#include "kernels/vectors/vector_neon.h"

namespace outrider::kernels {
namespace {

// Eight columns (half a tile) at a time: the sums of eight rows take 16 registers, their inputs 4
// and the weights 4 more. An odd last row is computed twice.
struct I8mmDots {
  static constexpr int kMaxRows = 8;
  static constexpr int kFixedWayRows = kAnyRows;
  static constexpr std::size_t kOneRowAhead = kPrefetchBytes / 2;

  template <class Codes, int kParts, int R, class Inputs>
  static void dots(const std::byte* weights, const Inputs& inputs, Vector (&dots)[kParts][R]) {
    static_assert(Codes::kSigned || Codes::kMax < 128);
    constexpr int kPairs = (R + 1) / 2;
    for (int part = 0; part < kParts; ++part) {
      for (int half = 0; half < 2; ++half) {
        int32x4_t sums[kPairs][4];  // for columns 2 i and 2 i + 1, each with both rows of the pair
        multiply<Codes, kParts, R>(weights + half * (kRowBytes / 2), inputs, part, sums);
        for (int r = 0; r < R; ++r) {
          int off = 0;
          if constexpr (Codes::kOffset != 0) {
            off = Codes::kOffset * inputs.template sum<kParts>(r, part);
          }
          for (int i = 0; i < 2; ++i) {
            const int32x4_t first = sums[r / 2][2 * i];
            const int32x4_t second = sums[r / 2][2 * i + 1];
            const int32x4_t sum =
                r % 2 == 0 ? vuzp1q_s32(first, second) : vuzp2q_s32(first, second);
            dots[part][r].quarter[2 * half + i] = vcvtq_f32_s32(vsubq_s32(sum, vdupq_n_s32(off)));
          }
        }
      }
    }
  }

 private:
  template <class Codes, int kParts, int R, class Inputs, int kPairs>
  [[gnu::always_inline]] static void multiply(const std::byte* weights, const Inputs& inputs,
                                              int part, int32x4_t (&sums)[kPairs][4]) {
    for (int pair = 0; pair < kPairs; ++pair) {
      for (int i = 0; i < 4; ++i) sums[pair][i] = vdupq_n_s32(0);
    }
    // Eight elements of a column are one quad and the next.
    constexpr int kEights = kGroup / 8 / kParts;
#pragma GCC unroll 4
    for (int eight = part * kEights; eight < (part + 1) * kEights; ++eight) {
      int8x16_t input[kPairs];
      for (int pair = 0; pair < kPairs; ++pair) {
        const int last = 2 * pair + 1 < R ? 2 * pair + 1 : R - 1;
        input[pair] = vcombine_s8(vld1_s8(inputs.row(2 * pair) + 8 * eight),
                                  vld1_s8(inputs.row(last) + 8 * eight));
      }
      for (int i = 0; i < 2; ++i) {
        const uint32x4_t first = quad<Codes>(weights + 16 * i, 2 * eight);
        const uint32x4_t second = quad<Codes>(weights + 16 * i, 2 * eight + 1);
        const int8x16_t columns[2] = {vreinterpretq_s8_u32(vzip1q_u32(first, second)),
                                      vreinterpretq_s8_u32(vzip2q_u32(first, second))};
        for (int pair = 0; pair < kPairs; ++pair) {
          int32x4_t* const of_pair = sums[pair] + 2 * i;
          of_pair[0] = vmmlaq_s32(of_pair[0], columns[0], input[pair]);
          of_pair[1] = vmmlaq_s32(of_pair[1], columns[1], input[pair]);
        }
      }
    }
  }

  template <class Codes>
  [[gnu::always_inline]] static uint32x4_t quad(const std::byte* weights, int quad) {
    return vreinterpretq_u32_u8(Codes::template quad<BytesNeon>(weights, quad).bytes);
  }
};
static_assert(OneTileDots<I8mmDots, Vector>);

template <class Dots, class Format>
void multiply(const MatmulArgs& args) {
  if (args.n_rows == 1) return kNeonTable.format(Format::kKind).matmul(args);
  matmul_quantized<Vector, TileByTile<Vector, Dots>, Format>(args);
}

}  // namespace

void matmul_int8_i8mm(const MatmulArgs& args) { multiply<I8mmDots, Int8>(args); }
void matmul_int4_i8mm(const MatmulArgs& args) { multiply<I8mmDots, Int4>(args); }
template <WeightKind kKind>
void matmul_stored_i8mm(const MatmulArgs& args) {
  multiply<FourRows<I8mmDots>, FormatOf<kKind>>(args);
}
template void matmul_stored_i8mm<WeightKind::q2_k>(const MatmulArgs&);
template void matmul_stored_i8mm<WeightKind::q3_k>(const MatmulArgs&);
template void matmul_stored_i8mm<WeightKind::q4_k>(const MatmulArgs&);
template void matmul_stored_i8mm<WeightKind::q5_0>(const MatmulArgs&);
template void matmul_stored_i8mm<WeightKind::q5_1>(const MatmulArgs&);
template void matmul_stored_i8mm<WeightKind::q5_k>(const MatmulArgs&);
template void matmul_stored_i8mm<WeightKind::q6_k>(const MatmulArgs&);
template void matmul_stored_i8mm<WeightKind::iq4_nl>(const MatmulArgs&);
template void matmul_stored_i8mm<WeightKind::iq4_xs>(const MatmulArgs&);
template void matmul_stored_i8mm<WeightKind::mxfp4>(const MatmulArgs&);

}  // namespace outrider::kernels
#endif  // __aarch64__
