// SPDX-License-Identifier: Apache-2.0
// The numbers of attention over keys and values in int8 (attention.h). Queries, and the weights of
// a chunk's values, become integers of 14 bits and a scale. So scores and sums of values are exact
// sums of integers, converted to floats once. The rounding error of a query or a weight is a
// hundredth of that of int8 keys and values.
#ifndef OUTRIDER_KERNELS_ATTENTION_INT8_ATTENTION_H_
#define OUTRIDER_KERNELS_ATTENTION_INT8_ATTENTION_H_

#include <concepts>
#include <cstddef>
#include <cstdint>

#include "kernels/attention/attention.h"
#include "kernels/attention/kv_layout.h"
#include "kernels/attention/products_and_numbers.h"
#include "kernels/layout.h"
#include "kernels/table.h"
#include "kernels/vectors/float_vector.h"
#include "kernels/vectors/vector_math.h"

namespace outrider::kernels {
namespace {

// The largest element becomes this: two digits of at most 127 each to the base 128, for units that
// multiply only bytes. Sums stay within 32 bits: over 576 dims 2^30.2, over 64 values 2^27.
constexpr float kMaxWord = 127 * 128;

// The scale of words whose largest element has size `largest`, and the factor that turns elements
// into words; both 0 if the factor overflows.
struct WordScale {
  explicit WordScale(float largest) : inverse(kMaxWord / largest), scale(largest / kMaxWord) {
    if (inverse > 3.402823466e38F) inverse = scale = 0.0F;
  }
  float inverse;
  float scale;
};

// x (n) -> words (n_words, a multiple of 16), zeros after them. Returns the scale of the words: NaN
// if an element is infinite or NaN, so that results are NaN, too (as in quantize_row).
template <FloatVector V>
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
    // 0 instead of NaN.
    const V value = taint != taint ? V::zero() : load_at<V>(x, i, n);
    (value * inverse).store_int16(words + i);
  }
  for (int i = (n + kLanes - 1) / kLanes * kLanes; i < n_words; ++i) words[i] = 0;
  return taint != taint ? taint : word.scale;
}

// The same for a chunk's weights times the scales of their values, none of which is negative. A NaN
// weight appears in the weights' total; a NaN scale of a value is handled by the caller.
template <FloatVector V>
float weights_to_words(const float* weights, const float* scales, std::int16_t* words) {
  V products[kChunkKeys / kLanes];
  V largest = V::zero();
  for (int i = 0; i < kChunkKeys; i += kLanes) {
    V& product = products[i / kLanes];
    product = max(V::load(weights + i) * V::load(scales + i), V::zero());  // 0 instead of NaN
    largest = max(largest, product);
  }
  const WordScale word(reduce_max(largest));
  const V inverse = V::broadcast(word.inverse);
  for (int i = 0; i < kChunkKeys; i += kLanes) {
    (products[i / kLanes] * inverse).store_int16(words + i);
  }
  return word.scale;
}

// Numbers for products of words with int8 keys and values: each word unchanged, in rows of whole
// vectors.
struct WordNumbers {
  static constexpr KvKind kKind = KvKind::int8;
  using Number = std::int16_t;
  static constexpr int kTogether = kLanes;
  static constexpr int kDigits = 1;
};

// The row's numbers are the words themselves.
template <class Products>
concept OfWords = Products::kDigits == 1 && std::same_as<typename Products::Number, std::int16_t>;

// Each word is several numbers.
template <class Products>
concept OfDigits = Products::kDigits >
1 && requires(const std::int16_t* words, int n, typename Products::Number* row) {
  Products::to_digits(words, n, row);  // the digits of n words
};

// Products of words with int8 keys and values: exact, rounded once.
template <class Products, class V>
concept WordDots = (OfWords<Products> || OfDigits<Products>)&&requires {
  requires Products::kKind == KvKind::int8;
  requires Positive<Products::kTogether>;  // a row has a multiple of so many words: zeros at the
                                           // end
  requires Products::kTogether % kLanes == 0;
}
&&AttentionDots<Products, V, StridedRows<typename Products::Number>>;

// The numbers of a query and of a chunk's weights: words, or their digits.
template <FloatVector V, WordDots<V> Products>
class Int8Numbers {
 public:
  using Weight = PlainWeight<V>;
  using Number = typename Products::Number;

  Int8Numbers(const AttendArgs& args, const KvLayout& layout)
      : args_(args),
        scales_at_(layout.scales_at()),
        n_words_((args.head_dim + Products::kTogether - 1) / Products::kTogether *
                 Products::kTogether) {}

  void query(int index, const float* x) {
    const float scale = fill(&queries_[index * stride()], n_words_, [&](std::int16_t* words) {
      return query_to_words<V>(x, args_.head_dim, words, n_words_);
    });
    score_scales_[index] = scale * args_.scale;
  }
  StridedRows<Number> queries(int index) const { return {&queries_[index * stride()], stride()}; }
  void begin_keys(const std::byte* keys) {
    key_scales_ = reinterpret_cast<const float*>(keys + scales_at_);
  }
  V score(int index, int vector, const V& dots) const {
    const V scaled = dots * V::load(key_scales_ + vector * kLanes);
    return scaled * V::broadcast(score_scales_[index]);
  }
  // For n values: 0 after them.
  void begin_values(const std::byte* values, int n) {
    const auto* const scales = reinterpret_cast<const float*>(values + scales_at_);
    V taint = V::zero();
    for (int i = 0; i < kChunkKeys; i += kLanes) {
      const int left = n - i;
      const V some = left >= kLanes ? V::load(scales + i)
                                    : (left > 0 ? V::load_first(scales + i, left) : V::zero());
      some.store(value_scales_ + i);
      taint = taint + some * V::zero();
    }
    taint_ = reduce_add(taint);
  }
  template <int R>
  StridedRows<Number> weights(const float (*from)[kChunkKeys]) {
    for (int r = 0; r < R; ++r) {
      const float scale = fill(weights_[r], kChunkKeys, [&](std::int16_t* words) {
        return weights_to_words<V>(from[r], value_scales_, words);
      });
      sum_scales_[r] = scale + taint_;
    }
    return {weights_[0], kChunkKeys * Products::kDigits};
  }
  V sum(int r, const V& dots, const V& so_far) const {
    return fma(dots, V::broadcast(sum_scales_[r]), so_far);
  }

 private:
  int stride() const { return n_words_ * Products::kDigits; }

  // to_words(words): writes n of them, which become the row's numbers.
  template <class ToWords>
  static float fill(Number* row, int n, const ToWords& to_words) {
    if constexpr (Products::kDigits == 1) {
      return to_words(row);
    } else {
      alignas(kLineBytes) std::int16_t words[kMaxRoundedHeadDim];
      const float scale = to_words(words);
      Products::to_digits(words, n, row);
      return scale;
    }
  }

  const AttendArgs& args_;
  std::size_t scales_at_;
  int n_words_;  // of a query, including the zeros after it
  float score_scales_[kMaxQueryStates];
  const float* key_scales_ = nullptr;
  alignas(kLineBytes) float value_scales_[kChunkKeys];
  float taint_ = 0.0F;  // NaN if a scale of the chunk's values is
  float sum_scales_[Products::kRows];
  alignas(kLineBytes) Number weights_[Products::kRows][kChunkKeys * Products::kDigits];
  // Includes padding after the last state's, which is read without effect by kRows rows at a time.
  alignas(kLineBytes) Number
      queries_[(kMaxQueryStates + Products::kRows - 1) * kMaxRoundedHeadDim * Products::kDigits];
};

}  // namespace
}  // namespace outrider::kernels

#endif  // OUTRIDER_KERNELS_ATTENTION_INT8_ATTENTION_H_
