// SPDX-License-Identifier: Apache-2.0
// Products of words (attention/int8_attention.h), for the files compiled for AVX-512. MultiplyAdd
// adds two products to each of sixteen sums. Internal linkage, as everything compiled with
// instruction-set flags.
#ifndef OUTRIDER_KERNELS_VECTORS_WORDS512_H_
#define OUTRIDER_KERNELS_VECTORS_WORDS512_H_

#include <cstddef>
#include <cstdint>

#include "kernels/attention/attention.h"
#include "kernels/attention/int8_attention.h"
#include "kernels/layout.h"
#include "kernels/table.h"
#include "kernels/vectors/pairs512.h"
#include "kernels/vectors/vector512.h"

namespace outrider::kernels {
namespace {

template <class MultiplyAdd>
struct Words512 : SumsOfPairs512, WordNumbers {
  template <int R, int T, class Rows, class Ahead, class Use>
  static void dots(const std::byte* cells, std::size_t row_bytes, int n, const Rows& rows,
                   const Ahead& ahead, const Use& use) {
    __m512i sums[R][T];
    for (int r = 0; r < R; ++r) {
      for (int t = 0; t < T; ++t) sums[r][t] = _mm512_setzero_si512();
    }
    std::size_t at = 0;
    for (int i = 0; i < n; i += 4, at += row_bytes) {
      ahead.template row<T>(at);
      __m512i bytes[T];
      for (int t = 0; t < T; ++t) {
        bytes[t] = _mm512_loadu_si512(cells + at + static_cast<std::size_t>(t) * kLineBytes);
      }
      __m512i words[T];
      for (int t = 0; t < T; ++t) words[t] = _mm512_srai_epi16(_mm512_slli_epi16(bytes[t], 8), 8);
      for (int r = 0; r < R; ++r) {
        const __m512i row = broadcast_pair(rows.at(r) + i);
        for (int t = 0; t < T; ++t) sums[r][t] = MultiplyAdd::of(sums[r][t], words[t], row);
      }
      for (int t = 0; t < T; ++t) words[t] = _mm512_srai_epi16(bytes[t], 8);
      for (int r = 0; r < R; ++r) {
        const __m512i row = broadcast_pair(rows.at(r) + i + 2);
        for (int t = 0; t < T; ++t) sums[r][t] = MultiplyAdd::of(sums[r][t], words[t], row);
      }
    }
    for_sums<R, T>([&](int r, int t) { use(r, t, Vector{_mm512_cvtepi32_ps(sums[r][t])}); });
  }
};

}  // namespace
}  // namespace outrider::kernels

#endif  // OUTRIDER_KERNELS_VECTORS_WORDS512_H_
