// SPDX-License-Identifier: Apache-2.0
// The avx512 table's integer products on machines with VNNI: one instruction sums four products of
// bytes, or two of words, into 32 bits, without saturation.
#if defined(__x86_64__)
#include <type_traits>

#include "kernels/algorithms.h"
#include "kernels/vectors/bytes512.h"
#include "kernels/vectors/vector512.h"
#include "kernels/vectors/words512.h"

namespace outrider::kernels {
namespace {

// Quad by quad, a row's inputs with all tiles at once. So an input is broadcast once per group and
// not kept, weights are loaded where they are multiplied, and the R * T sums are independent.
struct VnniDots {
  // 8 registers hold the float sums, 8 the integer ones.
  static constexpr int kMaxRows = 8;
  static constexpr int kFixedWayRows = kAnyRows;
  // (With half: one row of int8 takes as long, of int4 1.05 to 1.2 times as long.)
  static constexpr std::size_t kOneRowAhead = kPrefetchBytes / kMaxStreams;

  // The instruction takes one side as unsigned. Signed weights become w + 128 (the sign bit
  // flipped). The excess of a code times the sum of the inputs is subtracted at the start. All
  // values stay within 32 * 255 * 127.
  template <class Codes, int kParts, int R, int T, class Inputs, class Use>
  static void dots(const GroupWeights& weights, const Inputs& inputs, const Use& use) {
    constexpr int kTooMuch = Codes::kSigned ? 128 : Codes::kOffset;
    const __m512i sign = _mm512_set1_epi8(-128);
    __m512i sums[kParts][T][R];
    for (int part = 0; part < kParts; ++part) {
      for (int r = 0; r < R; ++r) {
        const __m512i first =
            kTooMuch == 0 ? _mm512_setzero_si512()
                          : _mm512_set1_epi32(-kTooMuch * inputs.template sum<kParts>(r, part));
        for (int t = 0; t < T; ++t) sums[part][t][r] = first;
      }
    }
#pragma GCC unroll 8
    for (int quad = 0; quad < kQuads; ++quad) {
      const int part = quad * kParts / kQuads;
      __m512i bytes[T];
      for (int t = 0; t < T; ++t) {
        bytes[t] = Codes::template quad<Bytes512>(weights.tile(t), quad).bytes;
        if constexpr (Codes::kSigned) bytes[t] = _mm512_xor_si512(bytes[t], sign);
      }
      for (int r = 0; r < R; ++r) {
        int four;
        __builtin_memcpy(&four, inputs.row(r) + quad * kQuad, 4);
        const __m512i input = _mm512_set1_epi32(four);
        for (int t = 0; t < T; ++t) {
          sums[part][t][r] = _mm512_dpbusd_epi32(sums[part][t][r], bytes[t], input);
        }
      }
    }
#pragma GCC unroll 4
    for (int t = 0; t < T; ++t) {
      Vector dots[kParts][R];
      for (int part = 0; part < kParts; ++part) {
        for (int r = 0; r < R; ++r) dots[part][r] = {_mm512_cvtepi32_ps(sums[part][t][r])};
      }
      use(t, dots);
    }
  }
};
static_assert(GroupDots<VnniDots, Vector>);

// For Intel's processors, which have few buffers for prefetches into any cache. From three rows on,
// four parallel prefetches, which the L2 cache's prefetcher runs ahead of, reach a higher memory
// bandwidth than one or two streams (products.h, PrefetchStreams).
struct VnniDotsSideBySide : VnniDots {
  static constexpr int kFixedWayRows = 2;
};

struct MultiplyAdd {
  static __m512i of(__m512i sum, __m512i a, __m512i b) { return _mm512_dpwssd_epi32(sum, a, b); }
};
static_assert(WordDots<Words512<MultiplyAdd>, Vector>);

}  // namespace

void matmul_int8_vnni(const MatmulArgs& args) { matmul_quantized<Vector, VnniDots, Int8>(args); }
void matmul_int4_vnni(const MatmulArgs& args) { matmul_quantized<Vector, VnniDots, Int4>(args); }
void matmul_int8_vnni_side_by_side(const MatmulArgs& args) {
  matmul_quantized<Vector, VnniDotsSideBySide, Int8>(args);
}
void matmul_int4_vnni_side_by_side(const MatmulArgs& args) {
  matmul_quantized<Vector, VnniDotsSideBySide, Int4>(args);
}

// A block of 256 weights has its scales after its codes: one row of it reads lines further apart
// than with int8 and int4. (Prefetching a quarter, half and all of kPrefetchBytes ahead, one row of
// q4_k and q6_k takes 1, 0.95 and 0.92 of the time; twice as far 0.95. int8 takes 1.03; a model of
// q5_0 and q8_0 takes as long.)
struct StoredDots : VnniDotsSideBySide {
  static constexpr std::size_t kOneRowAhead = kPrefetchBytes;
};

// A drafted pass has five rows or more: two blocks of rows would unpack all weights twice. So the
// formats of most files (Q4_K_M is q4_k and q6_k, or q5_0 if rows are no multiple of 256) take
// eight rows together. (Passes of Qwen2.5-Coder 1.5B, Q4_K_M, medians of three ratios: 5 rows in
// 0.93 of the time, 8 in 0.83, 16 in 0.86.)
constexpr bool is_of_most_files(WeightKind kind) {
  return kind == WeightKind::q4_k || kind == WeightKind::q5_0 || kind == WeightKind::q6_k;
}
template <WeightKind kKind>
void matmul_stored_vnni(const MatmulArgs& args) {
  using Dots = std::conditional_t<is_of_most_files(kKind), StoredDots, FourRows<StoredDots>>;
  matmul_quantized<Vector, Dots, FormatOf<kKind>>(args);
}
template void matmul_stored_vnni<WeightKind::q2_k>(const MatmulArgs&);
template void matmul_stored_vnni<WeightKind::q3_k>(const MatmulArgs&);
template void matmul_stored_vnni<WeightKind::q4_k>(const MatmulArgs&);
template void matmul_stored_vnni<WeightKind::q5_0>(const MatmulArgs&);
template void matmul_stored_vnni<WeightKind::q5_1>(const MatmulArgs&);
template void matmul_stored_vnni<WeightKind::q5_k>(const MatmulArgs&);
template void matmul_stored_vnni<WeightKind::q6_k>(const MatmulArgs&);
template void matmul_stored_vnni<WeightKind::iq4_nl>(const MatmulArgs&);
template void matmul_stored_vnni<WeightKind::iq4_xs>(const MatmulArgs&);
template void matmul_stored_vnni<WeightKind::mxfp4>(const MatmulArgs&);

void attend_int8_vnni(const AttendArgs& args) {
  attend_with<Vector, Words512<MultiplyAdd>, Int8Numbers<Vector, Words512<MultiplyAdd>>>(args);
}

}  // namespace outrider::kernels
#endif  // __x86_64__
