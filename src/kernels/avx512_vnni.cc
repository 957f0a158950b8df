// The integer products of the avx512 table on machines with VNNI: four products of bytes, or two of
// words, summed into 32 bits by one instruction, without saturation.
#if defined(__x86_64__)
#include "kernels/algorithms.h"
#include "kernels/vector512.h"
#include "kernels/words512.h"

namespace outrider::kernels {
namespace {

struct VnniDots {
  // 8 registers hold a group's weights, 8 the float sums, 8 the integer ones.
  static constexpr int kMaxRows = 8;

  static __m512i load_bytes(const std::byte* p) {
    return _mm512_load_si512(reinterpret_cast<const void*>(p));
  }

  // weights: unsigned bytes, one register a quad. start(r): where row r's sums begin.
  template <int R, class Start>
  static void multiply(const __m512i (&weights)[kQuads], Start start, const GroupInputs& inputs,
                       Vector (&dots)[R]) {
    for (int r = 0; r < R; ++r) {
      __m512i sum = _mm512_set1_epi32(start(r));
      for (int quad = 0; quad < kQuads; ++quad) {
        int four;
        __builtin_memcpy(&four, inputs.row(r) + quad * kQuad, 4);
        sum = _mm512_dpbusd_epi32(sum, weights[quad], _mm512_set1_epi32(four));
      }
      dots[r] = {_mm512_cvtepi32_ps(sum)};
    }
  }

  // The instruction wants one side unsigned: w + 128 (the sign bit flipped), 128 times the sum of
  // the inputs taken off at the start. Within 32 * 255 * 127 all along.
  template <int R>
  static void int8(const std::byte* weights, const GroupInputs& inputs, Vector (&dots)[R]) {
    const __m512i sign = _mm512_set1_epi8(-128);
    __m512i shifted[kQuads];
    for (int quad = 0; quad < kQuads; ++quad) {
      shifted[quad] = _mm512_xor_si512(load_bytes(weights + quad * kRowBytes), sign);
    }
    multiply(
        shifted, [&](int r) { return -128 * inputs.sum(r); }, inputs, dots);
  }

  template <int R>
  static void int4(const std::byte* weights, const GroupInputs& inputs, Vector (&dots)[R]) {
    const __m512i low_bits = _mm512_set1_epi8(15);
    __m512i nibbles[kQuads];
    for (int quad = 0; quad < kQuads / 2; ++quad) {
      const __m512i both = load_bytes(weights + quad * kRowBytes);
      nibbles[quad] = _mm512_and_si512(both, low_bits);
      nibbles[quad + kQuads / 2] = _mm512_and_si512(_mm512_srli_epi16(both, 4), low_bits);
    }
    multiply(
        nibbles, [](int) { return 0; }, inputs, dots);
  }
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
void attend_int8_vnni(const AttendArgs& args) {
  attend_with<Vector, Words512<MultiplyAdd>, Int8Numbers<Vector, Words512<MultiplyAdd>>>(args);
}

}  // namespace outrider::kernels
#endif  // __x86_64__
