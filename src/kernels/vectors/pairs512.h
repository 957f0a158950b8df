// SPDX-License-Identifier: Apache-2.0
// Products of rows with cells of pairs of 16-bit numbers (attention/products_and_numbers.h), for
// the files compiled for AVX-512. Internal linkage, as everything compiled with instruction-set
// flags.
#ifndef OUTRIDER_KERNELS_VECTORS_PAIRS512_H_
#define OUTRIDER_KERNELS_VECTORS_PAIRS512_H_

#include <cstddef>

#include "kernels/vectors/vector512.h"

namespace outrider::kernels {
namespace {

// At most 16 sums (eight rows and two vectors of columns, or fewer rows and four vectors) and their
// operands (docs/performance.md has other shapes).
struct SumsOfPairs512 {
  static constexpr int kRows = 8;
  static constexpr int vectors(int n) { return n > 4 ? 2 : 4; }
};

// Two 16-bit numbers, sixteen times.
template <class Number>
[[gnu::always_inline]] inline __m512i broadcast_pair(const Number* p) {
  static_assert(sizeof(Number) == 2);
  int two;
  __builtin_memcpy(&two, p, 4);
  return _mm512_set1_epi32(two);
}

}  // namespace
}  // namespace outrider::kernels

#endif  // OUTRIDER_KERNELS_VECTORS_PAIRS512_H_
