// The numbers of attention over keys and values in int8 (laid_attention.h): queries, and the
// weights of a chunk's values, become integers of 14 bits and a scale, so that scores and sums of
// values are exact sums of integers, converted to floats once. What that takes off a query or a
// weight is a hundredth of what int8 takes off keys and values.
#ifndef OUTRIDER_KERNELS_INT8_ATTENTION_H_
#define OUTRIDER_KERNELS_INT8_ATTENTION_H_

#include <cstddef>
#include <cstdint>

#include "kernels/attention.h"
#include "kernels/laid_attention.h"
#include "kernels/layout.h"
#include "kernels/table.h"
#include "kernels/vector_math.h"

namespace outrider::kernels {
namespace {

// The largest element becomes this: two digits of at most 127 each to the base 128, should a unit
// multiply nothing but bytes. Sums stay within 32 bits: over 256 dims 2^29, over 64 values 2^27.
constexpr float kMostWord = 127 * 128;

// What the words of something count for whose largest element is `largest` in size, and what its
// elements are multiplied by; 0 where that is all they come to.
struct WordScale {
  explicit WordScale(float largest) : inverse(kMostWord / largest), scale(largest / kMostWord) {
    if (inverse > 3.402823466e38F) inverse = scale = 0.0F;
  }
  float inverse;
  float scale;
};

// x (n) -> words (n_words, a multiple of 16), zeros behind; the return value is what one counts
// for: NaN where an element is infinite or NaN, so that what comes of it shows what went in (as
// quantize_row does).
template <class V>
float query_to_words(const float* x, int n, std::int16_t* words, int n_words) {
  V largest = V::zero();
  V taint_lanes = V::zero();
  for (int i = 0; i < n; i += kLanes) {
    const V value = load_at<V>(x, i, n);
    largest = max(largest, absolute(value));
    taint_lanes = taint_lanes + value * V::zero();
  }
  const float taint = reduce_add(taint_lanes);
  const WordScale word(reduce_max(largest));
  const V inverse = V::broadcast(taint != taint ? 0.0F : word.inverse);
  for (int i = 0; i < n; i += kLanes) {
    // 0 in the place of NaN.
    const V value = taint != taint ? V::zero() : load_at<V>(x, i, n);
    (value * inverse).store_int16(words + i);
  }
  for (int i = (n + kLanes - 1) / kLanes * kLanes; i < n_words; ++i) words[i] = 0;
  return taint != taint ? taint : word.scale;
}

// The same of a chunk's weights times the scales of their values, none of which are negative. A
// weight that is NaN shows in their total; a value's scale that is, in the caller's.
template <class V>
float weights_to_words(const float* weights, const float* scales, std::int16_t* words) {
  V products[kChunkKeys / kLanes];
  V largest = V::zero();
  for (int i = 0; i < kChunkKeys; i += kLanes) {
    V& product = products[i / kLanes];
    product = max(V::load(weights + i) * V::load(scales + i), V::zero());  // 0 in the place of NaN
    largest = max(largest, product);
  }
  const WordScale word(reduce_max(largest));
  const V inverse = V::broadcast(word.inverse);
  for (int i = 0; i < kChunkKeys; i += kLanes) {
    (products[i / kLanes] * inverse).store_int16(words + i);
  }
  return word.scale;
}

template <class V>
class Int8Numbers {
 public:
  using Weight = PlainWeight<V>;

  explicit Int8Numbers(const AttendArgs& args) : args_(args) {}

  void query(int walk, const float* x, int n, std::int16_t* words, int n_words) {
    score_scales_[walk] = query_to_words<V>(x, n, words, n_words) * args_.scale;
  }
  void key(int i, const void* at) { key_scales_[i] = scale(at); }
  void value(int i, const void* at) { value_scales_[i] = scale(at); }
  V score(int walk, int vector, const V& dots) const {
    const V scaled = dots * V::load(key_scales_ + vector * kLanes);
    return scaled * V::broadcast(score_scales_[walk]);
  }
  void begin_sums(int n) {
    for (int i = n; i < kChunkKeys; ++i) value_scales_[i] = 0.0F;
    V taint = V::zero();
    for (int i = 0; i < kChunkKeys; i += kLanes) {
      taint = taint + V::load(value_scales_ + i) * V::zero();
    }
    taint_ = reduce_add(taint);
  }
  float weights(const float* from, std::int16_t* words) const {
    return weights_to_words<V>(from, value_scales_, words) + taint_;
  }
  static V sum(const V& dots, float scale, const V& out) {
    return fma(dots, V::broadcast(scale), out);
  }

 private:
  float scale(const void* at) const {
    float scale;
    __builtin_memcpy(&scale, static_cast<const char*>(at) + args_.head_scale, sizeof scale);
    return scale;
  }

  const AttendArgs& args_;
  float score_scales_[kMostWalks];
  alignas(kLineBytes) float key_scales_[kChunkKeys];
  alignas(kLineBytes) float value_scales_[kChunkKeys];
  float taint_ = 0.0F;  // NaN where a scale of the chunk's values is
};

template <class V, class Words>
using Int8Steps = LaidSteps<V, Words, Int8Numbers<V>>;

}  // namespace
}  // namespace outrider::kernels

#endif  // OUTRIDER_KERNELS_INT8_ATTENTION_H_
