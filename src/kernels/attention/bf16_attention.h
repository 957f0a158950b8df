// SPDX-License-Identifier: Apache-2.0
// The numbers of attention over keys and values in bf16 by products of bf16 (attention.h). Queries
// and weights are rounded to bf16, as inputs of products with bf16 weights are. The total also adds
// rounded weights, so that the divisor is the sum of the weights in use.
#ifndef OUTRIDER_KERNELS_ATTENTION_BF16_ATTENTION_H_
#define OUTRIDER_KERNELS_ATTENTION_BF16_ATTENTION_H_

#include <cstddef>
#include <cstdint>

#include "kernels/attention/attention.h"
#include "kernels/attention/kv_layout.h"
#include "kernels/attention/products_and_numbers.h"
#include "kernels/layout.h"
#include "kernels/rows.h"
#include "kernels/table.h"
#include "kernels/vectors/float_vector.h"
#include "kernels/vectors/vector_math.h"

namespace outrider::kernels {
namespace {

template <Bf16Vector V, AttentionDots<V, StridedRows<std::uint16_t>> Pairs>
class Bf16Numbers {
 public:
  // e^x for x <= 0, rounded to eight bits. The Taylor polynomial of degree 4 leaves 0.3466^5 / 120
  // = 2^-14, a thirtieth of the rounding error. Rounding adds and subtracts a number that leaves no
  // room for the other sixteen bits (Dekker 1971, "A floating-point technique for extending the
  // available precision", section 5). Nothing overflows, since no weight is above 1.
  struct Weight {
    [[gnu::always_inline]] static V of(V x) {
      x = max(V::broadcast(-88.0F), x);  // as in exponential_of_negative
      const V n = round_even(x * V::broadcast(kInverseOfLn2));
      const V r = fma(n, V::broadcast(-0x1.62e43p-1F), x);
      V e = V::broadcast(1.0F / 24);
      e = fma(e, r, V::broadcast(1.0F / 6));
      e = fma(e, r, V::broadcast(0.5F));
      e = fma(e, r, V::broadcast(1.0F));
      e = fma(e, r, V::broadcast(1.0F));
      const V weight = e * power_of_two(n);
      const V raised = weight * V::broadcast(0x1p16F + 1);
      return raised - (raised - weight);
    }
  };

  Bf16Numbers(const AttendArgs& args, const KvLayout&)
      : head_dim_(args.head_dim),
        query_stride_((args.head_dim + kGroup - 1) / kGroup * kGroup),
        scale_(args.scale) {}

  void query(int index, const float* x) {
    std::uint16_t* words = queries_ + index * query_stride_;
    round_to_bf16<V>(x, head_dim_, words);
    for (int i = head_dim_; i < query_stride_; ++i) words[i] = 0;
  }
  StridedRows<std::uint16_t> queries(int index) const {
    return {queries_ + index * query_stride_, query_stride_};
  }
  void begin_keys(const std::byte*) {}
  V score(int, int, const V& dots) const { return dots * V::broadcast(scale_); }
  void begin_values(const std::byte*, int) {}
  template <int R>
  StridedRows<std::uint16_t> weights(const float (*from)[kChunkKeys]) {
    for (int r = 0; r < R; ++r) {
      for (int i = 0; i < kChunkKeys; i += kLanes) {
        V::load(from[r] + i).store_bf16(weights_[r] + i);
      }
    }
    return {weights_[0], kChunkKeys};
  }
  V sum(int, const V& dots, const V& so_far) const { return so_far + dots; }

 private:
  int head_dim_;
  int query_stride_;
  float scale_;
  alignas(kLineBytes) std::uint16_t weights_[Pairs::kRows][kChunkKeys];
  // Includes padding after the last state's, which is read without effect by kRows rows at a time.
  alignas(
      kLineBytes) std::uint16_t queries_[(kMaxQueryStates + Pairs::kRows - 1) * kMaxRoundedHeadDim];
};

}  // namespace
}  // namespace outrider::kernels

#endif  // OUTRIDER_KERNELS_ATTENTION_BF16_ATTENTION_H_
