// The products of rows with columns of pairs of 16-bit numbers (algorithms.h) of the files compiled
// for AVX-512. Internal linkage, as everything compiled with instruction-set flags.
#ifndef OUTRIDER_KERNELS_PAIRS512_H_
#define OUTRIDER_KERNELS_PAIRS512_H_

#include "kernels/table.h"
#include "kernels/vector512.h"

namespace outrider::kernels {
namespace {

// 16 sums, four vectors of columns and what is multiplied with them.
struct PairsTogether512 {
  static constexpr int kRows = 4;
  static constexpr int kVectors = 4;
  static constexpr int kPairsTogether = 1;
};

// MultiplyAdd offers Sum, sixteen of them: zero(), of(sum, a, b), to which the products of a's and
// b's pairs are added, and in_floats(sum).
template <class MultiplyAdd, int R, int T, class Word>
void multiply_pairs_of_columns(const Word* columns, int stride, int n_pairs, const Word* rows,
                               int row_stride, Vector (&dots)[R][T]) {
  typename MultiplyAdd::Sum sums[R][T];
  for (int r = 0; r < R; ++r) {
    for (int t = 0; t < T; ++t) sums[r][t] = MultiplyAdd::zero();
  }
  for (int pair = 0; pair < n_pairs; ++pair) {
    __m512i column[T];
    for (int t = 0; t < T; ++t) column[t] = _mm512_loadu_si512(columns + t * 2 * kLanes);
    columns += stride;
    for (int r = 0; r < R; ++r) {
      int two;
      __builtin_memcpy(&two, rows + r * row_stride + 2 * pair, 4);
      const __m512i row = _mm512_set1_epi32(two);
      for (int t = 0; t < T; ++t) sums[r][t] = MultiplyAdd::of(sums[r][t], column[t], row);
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int t = 0; t < T; ++t) dots[r][t] = MultiplyAdd::in_floats(sums[r][t]);
  }
}

}  // namespace
}  // namespace outrider::kernels

#endif  // OUTRIDER_KERNELS_PAIRS512_H_
