// How keys and values in bf16 become columns of pairs (algorithms.h), for the files compiled for
// AVX-512. Internal linkage, as everything compiled with instruction-set flags.
#ifndef OUTRIDER_KERNELS_BF16_COLUMNS512_H_
#define OUTRIDER_KERNELS_BF16_COLUMNS512_H_

#include <cstdint>

#include "kernels/table.h"
#include "kernels/vector512.h"

namespace outrider::kernels {
namespace {

struct Bf16Columns512 {
  using Stored = std::uint16_t;
  using Word = std::uint16_t;
  static constexpr int kKeyDims = 32;
  static constexpr int kValueDims = 32;

  static void lay_keys(const std::uint16_t* const (&keys)[kLanes], std::uint16_t* to, int stride) {
    __m512i pairs[16];
    for (int i = 0; i < 16; ++i) pairs[i] = _mm512_loadu_si512(keys[i]);
    transpose(pairs);
    for (int i = 0; i < 16; ++i) _mm512_storeu_si512(to + i * stride, pairs[i]);
  }

  static void lay_values(const std::uint16_t* first, const std::uint16_t* second,
                         std::uint16_t* to) {
    // Dims 0 to 15 into the low halves of the four quarters, from which they are dealt first.
    const __m512i halves = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
    const __m512i a = _mm512_permutexvar_epi64(halves, _mm512_loadu_si512(first));
    const __m512i b = _mm512_permutexvar_epi64(halves, _mm512_loadu_si512(second));
    _mm512_storeu_si512(to, _mm512_unpacklo_epi16(a, b));
    _mm512_storeu_si512(to + 32, _mm512_unpackhi_epi16(a, b));
  }
};

}  // namespace
}  // namespace outrider::kernels

#endif  // OUTRIDER_KERNELS_BF16_COLUMNS512_H_
