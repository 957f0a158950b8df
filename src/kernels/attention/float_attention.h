// SPDX-License-Identifier: Apache-2.0
// Attention over keys and values in f32 and bf16, in floats. A score adds the products of its dims
// in order; a chunk's sum adds those of its values in order. Each addition is one fused
// multiply-add, as in products with f32 and bf16 weights (attention.h has the rest).
#ifndef OUTRIDER_KERNELS_ATTENTION_FLOAT_ATTENTION_H_
#define OUTRIDER_KERNELS_ATTENTION_FLOAT_ATTENTION_H_

#include <cstddef>
#include <cstdint>

#include "kernels/attention/attention.h"
#include "kernels/attention/kv_layout.h"
#include "kernels/attention/products_and_numbers.h"
#include "kernels/table.h"
#include "kernels/vectors/float_vector.h"
#include "kernels/vectors/vector_math.h"

namespace outrider::kernels {
namespace {

// Four rows, and as many adjacent vectors of columns as the registers hold sums for. Even a single
// row's sums then wait little for their previous additions.
template <FloatVector V, KvKind kind>
struct FloatProducts {
  static_assert(kind != KvKind::int8);
  static constexpr KvKind kKind = kind;
  static constexpr int kRows = 4;
  static constexpr int vectors(int n_rows) {
    const int n = V::kAttentionSums / n_rows;
    return n > 4 ? 4 : n;
  }

  template <int R, int T, class Rows, class Ahead, class Use>
  static void dots(const std::byte* cells, std::size_t row_bytes, int n, const Rows& rows,
                   const Ahead& ahead, const Use& use) {
    V sums[R][T];
    for (int r = 0; r < R; ++r) {
      for (int t = 0; t < T; ++t) sums[r][t] = V::zero();
    }
    const auto add = [&](int i, const V(&columns)[T]) {
      for (int r = 0; r < R; ++r) {
        const V number = V::broadcast(rows.at(r)[i]);
        for (int t = 0; t < T; ++t) sums[r][t] = fma(number, columns[t], sums[r][t]);
      }
    };
    std::size_t at = 0;
    V columns[T];
    if constexpr (kind == KvKind::f32) {
      for (int i = 0; i < n; ++i, at += row_bytes) {
        ahead.template row<T>(at);
        const auto* const row = reinterpret_cast<const float*>(cells + at);
        for (int t = 0; t < T; ++t) columns[t] = V::load(row + t * kLanes);
        add(i, columns);
      }
    } else {
      for (int i = 0; i < n; i += 2, at += row_bytes) {
        ahead.template row<T>(at);
        const auto* const row = reinterpret_cast<const std::uint16_t*>(cells + at);
        for (int t = 0; t < T; ++t) columns[t] = V::load_even(row + t * 2 * kLanes);
        add(i, columns);
        if (i + 1 == n) break;
        for (int t = 0; t < T; ++t) columns[t] = V::load_odd(row + t * 2 * kLanes);
        add(i + 1, columns);
      }
    }
    for_sums<R, T>([&](int r, int t) { use(r, t, sums[r][t]); });
  }
};

// Queries and weights unchanged.
template <FloatVector V>
class FloatNumbers {
 public:
  using Weight = PlainWeight<V>;
  struct Queries {
    const float* const* of;
    [[gnu::always_inline]] const float* at(int r) const { return of[r]; }
  };

  FloatNumbers(const AttendArgs& args, const KvLayout&) : scale_(args.scale) {}

  void query(int index, const float* x) { queries_[index] = x; }
  Queries queries(int index) const { return {queries_ + index}; }
  void begin_keys(const std::byte*) {}
  V score(int, int, const V& dots) const { return dots * V::broadcast(scale_); }
  void begin_values(const std::byte*, int) {}
  template <int R>
  StridedRows<float> weights(const float (*from)[kChunkKeys]) const {
    return {from[0], kChunkKeys};
  }
  V sum(int, const V& dots, const V& so_far) const { return so_far + dots; }

 private:
  float scale_;
  const float* queries_[kMaxQueryStates];
};

}  // namespace
}  // namespace outrider::kernels

#endif  // OUTRIDER_KERNELS_ATTENTION_FLOAT_ATTENTION_H_
