// The integer products of the avx512 table on machines with VNNI: four products of bytes, or two of
// words, summed into 32 bits by one instruction, without saturation.
#if defined(__x86_64__)
#include "kernels/algorithms.h"
#include "kernels/vector512.h"
#include "kernels/words512.h"

namespace outrider::kernels {
namespace {

// Quad by quad, a row's inputs with all tiles at once: then an input is broadcast once a group and
// kept nowhere, weights are loaded where they are multiplied, and R * T sums have no need to wait
// for one another.
struct VnniDots {
  // 8 registers hold the float sums, 8 the integer ones.
  static constexpr int kMaxRows = 8;
  static constexpr int kFixedWayRows = kAnyRows;
  // (Half: one row of int8 the same, of int4 1.05 to 1.2 times as long.)
  static constexpr std::size_t kOneRowAhead = kPrefetchBytes / kMostStreams;

  // load(t, quad): 16 quads of tile t's weights, unsigned bytes. start(r): where row r's sums
  // begin.
  template <int R, int T, class Load, class Start, class Use>
  static void multiply(const Load& load, const Start& start, const GroupInputs& inputs,
                       const Use& use) {
    __m512i sums[T][R];
    for (int r = 0; r < R; ++r) {
      const __m512i first = _mm512_set1_epi32(start(r));
      for (int t = 0; t < T; ++t) sums[t][r] = first;
    }
#pragma GCC unroll 8
    for (int quad = 0; quad < kQuads; ++quad) {
      __m512i weights[T];
      for (int t = 0; t < T; ++t) weights[t] = load(t, quad);
      for (int r = 0; r < R; ++r) {
        int four;
        __builtin_memcpy(&four, inputs.row(r) + quad * kQuad, 4);
        const __m512i input = _mm512_set1_epi32(four);
        for (int t = 0; t < T; ++t) {
          sums[t][r] = _mm512_dpbusd_epi32(sums[t][r], weights[t], input);
        }
      }
    }
#pragma GCC unroll 4
    for (int t = 0; t < T; ++t) {
      Vector dots[R];
      for (int r = 0; r < R; ++r) dots[r] = {_mm512_cvtepi32_ps(sums[t][r])};
      use(t, dots);
    }
  }

  static __m512i load_bytes(const std::byte* p) {
    return _mm512_load_si512(reinterpret_cast<const void*>(p));
  }

  // The instruction wants one side unsigned: w + 128 (the sign bit flipped), 128 times the sum of
  // the inputs taken off at the start. Within 32 * 255 * 127 all along.
  template <int R, int T, class Use>
  static void int8(const GroupWeights& weights, const GroupInputs& inputs, const Use& use) {
    const __m512i sign = _mm512_set1_epi8(-128);
    const auto load = [&](int t, int quad) {
      return _mm512_xor_si512(load_bytes(weights.tile(t) + quad * kRowBytes), sign);
    };
    multiply<R, T>(
        load, [&](int r) { return -128 * inputs.sum(r); }, inputs, use);
  }

  template <int R, int T, class Use>
  static void int4(const GroupWeights& weights, const GroupInputs& inputs, const Use& use) {
    const __m512i low_bits = _mm512_set1_epi8(15);
    const auto load = [&](int t, int quad) {
      const int half = quad % (kQuads / 2);
      const __m512i both = load_bytes(weights.tile(t) + half * kRowBytes);
      return _mm512_and_si512(quad == half ? both : _mm512_srli_epi16(both, 4), low_bits);
    };
    multiply<R, T>(
        load, [](int) { return 0; }, inputs, use);
  }
};

// For Intel's processors, on which few buffers hold what is called for into any cache: from three
// rows on four calls side by side, whose lines the second cache's prefetcher runs ahead of, draw
// more from the memory than one or two streams (products.h, CallAhead).
struct VnniDotsSideBySide : VnniDots {
  static constexpr int kFixedWayRows = 2;
};

struct MultiplyAdd {
  static __m512i of(__m512i sum, __m512i a, __m512i b) { return _mm512_dpwssd_epi32(sum, a, b); }
};

}  // namespace

void matmul_int8_vnni(const MatmulArgs& args) {
  matmul_quantized<Vector, VnniDots, WeightKind::int8>(args);
}
void matmul_int4_vnni(const MatmulArgs& args) {
  matmul_quantized<Vector, VnniDots, WeightKind::int4>(args);
}
void matmul_int8_vnni_side_by_side(const MatmulArgs& args) {
  matmul_quantized<Vector, VnniDotsSideBySide, WeightKind::int8>(args);
}
void matmul_int4_vnni_side_by_side(const MatmulArgs& args) {
  matmul_quantized<Vector, VnniDotsSideBySide, WeightKind::int4>(args);
}
void attend_int8_vnni(const AttendArgs& args) {
  attend_with<Vector, Words512<MultiplyAdd>, Int8Numbers<Vector, Words512<MultiplyAdd>>>(args);
}

}  // namespace outrider::kernels
#endif  // __x86_64__
