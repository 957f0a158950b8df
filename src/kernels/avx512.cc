// AVX-512 F, BW, VL and DQ. Where the machine has VNNI or BF16 too, dispatch.cc replaces the
// products by those of avx512_vnni.cc and avx512_bf16.cc.
#if defined(__x86_64__)
#include "kernels/algorithms.h"
#include "kernels/vector512.h"
#include "kernels/words512.h"

namespace outrider::kernels {
namespace {

// Bytes widened to 16 bits and multiplied in pairs; nothing saturates.
struct Avx512Dots {
  static constexpr int kMaxRows = 4;
  static constexpr int kFixedWayRows = 2;
  static constexpr std::size_t kOneRowAhead = kPrefetchBytes / kMostStreams;

  // 32 bytes: one quad of eight columns.
  static __m256i load_bytes(const std::byte* p) {
    return _mm256_load_si256(reinterpret_cast<const __m256i*>(p));
  }

  // quads(quad, part): the quad of columns 8 * part .. 8 * part + 7 as bytes.
  template <int R, class Quads>
  static void multiply(Quads quads, const GroupInputs& inputs, Vector (&dots)[R]) {
    __m512i sums[R][2];  // per column two sums, of its quads' first and second halves
    for (int r = 0; r < R; ++r) sums[r][0] = sums[r][1] = _mm512_setzero_si512();
    for (int quad = 0; quad < kQuads; ++quad) {
      const __m512i weights[2] = {_mm512_cvtepi8_epi16(quads(quad, 0)),
                                  _mm512_cvtepi8_epi16(quads(quad, 1))};
      for (int r = 0; r < R; ++r) {
        int four;
        __builtin_memcpy(&four, inputs.row(r) + quad * kQuad, 4);
        const __m512i input = _mm512_cvtepi8_epi16(_mm256_set1_epi32(four));
        for (int part = 0; part < 2; ++part) {
          sums[r][part] = _mm512_add_epi32(sums[r][part], _mm512_madd_epi16(weights[part], input));
        }
      }
    }
    const __m512i evens =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odds = _mm512_add_epi32(evens, _mm512_set1_epi32(1));
    for (int r = 0; r < R; ++r) {
      const __m512i first = _mm512_permutex2var_epi32(sums[r][0], evens, sums[r][1]);
      const __m512i second = _mm512_permutex2var_epi32(sums[r][0], odds, sums[r][1]);
      dots[r] = {_mm512_cvtepi32_ps(_mm512_add_epi32(first, second))};
    }
  }

  template <int R>
  static void int8(const std::byte* weights, const GroupInputs& inputs, Vector (&dots)[R]) {
    const auto quads = [=](int quad, int part) {
      return load_bytes(weights + quad * kRowBytes + part * 32);
    };
    multiply(quads, inputs, dots);
  }

  template <int R>
  static void int4(const std::byte* weights, const GroupInputs& inputs, Vector (&dots)[R]) {
    const auto quads = [=](int quad, int part) {
      const int half = quad % (kQuads / 2);
      const __m256i both = load_bytes(weights + half * kRowBytes + part * 32);
      const __m256i low_bits = _mm256_set1_epi8(15);
      return _mm256_and_si256(quad == half ? both : _mm256_srli_epi16(both, 4), low_bits);
    };
    multiply(quads, inputs, dots);
  }
};

struct MultiplyThenAdd {
  static __m512i of(__m512i sum, __m512i a, __m512i b) {
    return _mm512_add_epi32(sum, _mm512_madd_epi16(a, b));
  }
};

}  // namespace

constinit const KernelTable kAvx512Table =
    make_table<Vector, TileByTile<Vector, Avx512Dots>, Words512<MultiplyThenAdd>>("avx512");

}  // namespace outrider::kernels
#endif  // __x86_64__
