// The products of words (algorithms.h) of the files compiled for AVX-512: MultiplyAdd says how two
// products are added to each of sixteen sums. Internal linkage, as everything compiled with
// instruction-set flags.
#ifndef OUTRIDER_KERNELS_WORDS512_H_
#define OUTRIDER_KERNELS_WORDS512_H_

#include <cstdint>

#include "kernels/pairs512.h"
#include "kernels/table.h"
#include "kernels/vector512.h"

namespace outrider::kernels {
namespace {

// What both kinds of additions have in common.
struct IntegerSums512 {
  using Sum = __m512i;
  static Sum zero() { return _mm512_setzero_si512(); }
  static Vector in_floats(Sum sum) { return {_mm512_cvtepi32_ps(sum)}; }
};

template <class MultiplyAdd>
struct Words512 : PairsTogether512 {
  using Stored = std::int8_t;
  using Word = std::int16_t;
  static constexpr int kKeyDims = 64;
  static constexpr int kValueDims = 64;

  // Rows of sixteen quads become columns, each of which is two pairs.
  static void lay_keys(const std::int8_t* const (&keys)[kLanes], std::int16_t* to, int stride) {
    // A quad's bytes 0, 2, 1, 3: its even bytes are one pair then, its odd ones the other.
    const __m512i even_odd =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15));
    __m512i quads[16];
    for (int i = 0; i < 16; ++i) {
      quads[i] = _mm512_shuffle_epi8(_mm512_loadu_si512(keys[i]), even_odd);
    }
    transpose(quads);
    for (int i = 0; i < 16; ++i) {
      _mm512_storeu_si512(to + 2 * i * stride,
                          _mm512_srai_epi16(_mm512_slli_epi16(quads[i], 8), 8));
      _mm512_storeu_si512(to + (2 * i + 1) * stride, _mm512_srai_epi16(quads[i], 8));
    }
  }

  static void lay_values(const std::int8_t* first, const std::int8_t* second, std::int16_t* to) {
    // Dims 0 to 31 into the low halves of the four quarters, from which they are dealt first.
    const __m512i halves = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
    const __m512i a = _mm512_permutexvar_epi64(halves, _mm512_loadu_si512(first));
    const __m512i b = _mm512_permutexvar_epi64(halves, _mm512_loadu_si512(second));
    store_words(_mm512_unpacklo_epi8(a, b), to);
    store_words(_mm512_unpackhi_epi8(a, b), to + 64);
  }

  template <int R, int T>
  static void dots(const std::int16_t* columns, int stride, int n_pairs, const std::int16_t* rows,
                   int row_stride, Vector (&dots)[R][T]) {
    multiply_pairs_of_columns<MultiplyAdd>(columns, stride, n_pairs, rows, row_stride, dots);
  }

 private:
  static void store_words(__m512i bytes, std::int16_t* to) {
    _mm512_storeu_si512(to, _mm512_cvtepi8_epi16(_mm512_castsi512_si256(bytes)));
    _mm512_storeu_si512(to + 32, _mm512_cvtepi8_epi16(_mm512_extracti64x4_epi64(bytes, 1)));
  }
};

}  // namespace
}  // namespace outrider::kernels

#endif  // OUTRIDER_KERNELS_WORDS512_H_
