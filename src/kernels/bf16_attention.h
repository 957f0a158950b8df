// The numbers of attention over keys and values in bf16 by products of bf16 (laid_attention.h):
// queries and weights are rounded to bf16, as inputs of products with bf16 weights are. A weight
// counts as rounded in the total too, so that what they are divided by is what they add up to.
#ifndef OUTRIDER_KERNELS_BF16_ATTENTION_H_
#define OUTRIDER_KERNELS_BF16_ATTENTION_H_

#include <cstddef>
#include <cstdint>

#include "kernels/laid_attention.h"
#include "kernels/rows.h"
#include "kernels/table.h"
#include "kernels/vector_math.h"

namespace outrider::kernels {
namespace {

template <class V>
class Bf16Numbers {
 public:
  // e^x of x <= 0, rounded to eight bits. The Taylor polynomial of degree 4 leaves 0.3466^5 / 120 =
  // 2^-14, a thirtieth of what rounding may take. It rounds by taking off and adding again what
  // leaves no room for the other sixteen bits (Dekker 1971, "A floating-point technique for
  // extending the available precision", section 5); nothing overflows, since no weight is above 1.
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

  explicit Bf16Numbers(const AttendArgs& args) : scale_(args.scale) {}

  void query(int, const float* x, int n, std::uint16_t* words, int n_words) {
    round_to_bf16<V>(x, n, words);
    for (int i = n; i < n_words; ++i) words[i] = 0;
  }
  void key(int, const void*) {}
  void value(int, const void*) {}
  V score(int, int, const V& dots) const { return dots * V::broadcast(scale_); }
  void begin_sums(int) {}
  float weights(const float* from, std::uint16_t* words) const {
    for (int i = 0; i < kChunkKeys; i += kLanes) V::load(from + i).store_bf16(words + i);
    return 1.0F;
  }
  static V sum(const V& dots, float, const V& out) { return out + dots; }

 private:
  float scale_;
};

}  // namespace
}  // namespace outrider::kernels

#endif  // OUTRIDER_KERNELS_BF16_ATTENTION_H_
