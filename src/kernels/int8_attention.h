// Attention over keys and values in int8, in integers (attention.h has the rest): queries, and the
// weights of a chunk's values, become integers of 14 bits and a scale, so that scores and sums of
// values are exact sums of integers, converted to floats once. What that takes off a query or a
// weight is a hundredth of what int8 takes off keys and values.
#ifndef OUTRIDER_KERNELS_INT8_ATTENTION_H_
#define OUTRIDER_KERNELS_INT8_ATTENTION_H_

#include <cstddef>
#include <cstdint>

#include "kernels/attention.h"
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

// x (n) -> words (n, and zeros to a whole vector); the return value is what one counts for: NaN
// where an element is infinite or NaN, so that what comes of it shows what went in (as quantize_row
// does).
template <class V>
float query_to_words(const float* x, int n, std::int16_t* words) {
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

// use(q, vector, dots): of n_vectors vectors of 16 columns, side by side in (n_pairs, n_vectors,
// 16, 2) words with pairs stride apart, the exact dot products with each of Q rows of words.
template <class V, class Words, int Q, int T, class Use>
void for_dots(const std::int16_t* columns, int n_vectors, int stride, int n_pairs,
              const std::int16_t* const (&rows)[Q], int vector, const Use& use) {
  for (; vector + T <= n_vectors; vector += T) {
    V dots[Q][T];
    Words::template dots<Q, T>(columns + vector * 2 * kLanes, stride, n_pairs, rows, dots);
    for (int q = 0; q < Q; ++q) {
      for (int t = 0; t < T; ++t) use(q, vector + t, dots[q][t]);
    }
  }
  if constexpr (T > 1) {
    if (vector < n_vectors) {
      for_dots<V, Words, Q, T / 2>(columns, n_vectors, stride, n_pairs, rows, vector, use);
    }
  }
}

// The steps of attend_by_chunks. Words: the instruction set's products of words (algorithms.h).
//
// A chunk's keys, then its values, are laid out for these products once for all walks. In the chunk
// in which rows part, each row lays out its own behind what is alike, and its sums begin anew:
// they are integers, so what is added twice or in another order is the same.
template <class V, class Words>
class Int8Steps {
 public:
  Int8Steps(const AttendArgs& args, int first_query, int n_queries)
      : args_(args),
        n_dim_vectors_((args.head_dim + kLanes - 1) / kLanes),
        walks_(args, first_query, n_queries) {
    for (int i = 0; i < walks_.of_rows(args.n_rows); ++i) {
      score_scales_[i] =
          query_to_words<V>(walks_[i].query, args.head_dim, query_of(i)) * args.scale;
    }
  }

  // Whole groups of sixteen: before `first` those that stand in its group, at the end the last one
  // again.
  void keys(const void* const* at, int first, int end, int n_at, int) {
    for (int group = first / kLanes * kLanes; group < end; group += kLanes) {
      const std::int8_t* heads[kLanes];
      for (int i = 0; i < kLanes; ++i) {
        const int key = group + i < end ? group + i : end - 1;
        call_ahead(at, key, n_at);
        heads[i] = head(at[key]);
        key_scales_[group + i] = scale(at[key]);
      }
      lay_keys(heads, words_ + group * 2);
    }
  }

  void values(const void* const* at, int first, int end, int n_at, int) {
    for (int i = first / 2 * 2; i < end; i += 2) {
      const int second = i + 1 < end ? i + 1 : i;  // which then counts for nothing
      call_ahead(at, i, n_at);
      call_ahead(at, second, n_at);
      value_scales_[i] = scale(at[i]);
      value_scales_[i + 1] = scale(at[second]);
      lay_values(head(at[i]), head(at[second]),
                 words_ + static_cast<std::size_t>(i / 2) * value_stride());
    }
  }

  void alike_scores(int) {}
  void alike_sums(int) {}
  void weights(int row, int n_rows, int, int n) {
    for_walks<Words::kRows>(walks_.first_of(row), walks_.of_rows(n_rows), WeightStep{*this, n});
  }
  void sums(int row, int n_rows, int, int n) {
    for (int i = n; i < kChunkKeys; ++i) value_scales_[i] = 0.0F;
    V taint = V::zero();
    for (int i = 0; i < kChunkKeys; i += kLanes) {
      taint = taint + V::load(value_scales_ + i) * V::zero();
    }
    taint_ = reduce_add(taint);
    for_walks<Words::kRows>(walks_.first_of(row), walks_.of_rows(n_rows), SumStep{*this, n});
  }
  void finish(int row) { walks_.template normalise<V>(row); }

 private:
  struct WeightStep {
    Int8Steps& steps;
    int n;
    template <int Q>
    void run(int walk) const {
      steps.weigh_walks<Q>(walk, n);
    }
  };
  struct SumStep {
    Int8Steps& steps;
    int n;
    template <int Q>
    void run(int walk) const {
      steps.sum_walks<Q>(walk, n);
    }
  };

  template <int Q>
  void weigh_walks(int walk, int n) {
    const std::int16_t* queries[Q];
    for (int q = 0; q < Q; ++q) queries[q] = query_of(walk + q);
    for_dots<V, Words, Q, Words::kVectors>(
        words_, (n + kLanes - 1) / kLanes, kKeyStride, (args_.head_dim + 1) / 2, queries, 0,
        [&](int q, int vector, const V& dots) {
          const V scaled = dots * V::load(key_scales_ + vector * kLanes);
          (scaled * V::broadcast(score_scales_[walk + q]))
              .store(weights_[walk + q] + vector * kLanes);
        });
    for (int q = 0; q < Q; ++q) {
      weigh<V>(args_.head_dim, n, weights_[walk + q], walks_[walk + q]);
    }
  }

  template <int Q>
  void sum_walks(int walk, int n) {
    alignas(kLineBytes) std::int16_t words[Q][kChunkKeys];
    const std::int16_t* rows[Q];
    float scales[Q];
    for (int q = 0; q < Q; ++q) {
      scales[q] = weights_to_words<V>(weights_[walk + q], value_scales_, words[q]) + taint_;
      rows[q] = words[q];
    }
    for_dots<V, Words, Q, Words::kVectors>(words_, n_dim_vectors_, value_stride(), (n + 1) / 2,
                                           rows, 0, [&](int q, int vector, const V& dots) {
                                             float* out = walks_[walk + q].out;
                                             const int d = vector * kLanes;
                                             const V sum = fma(dots, V::broadcast(scales[q]),
                                                               load_at<V>(out, d, args_.head_dim));
                                             store_at(sum, out, d, args_.head_dim);
                                           });
  }

  const std::int8_t* head(const void* at) const {
    return static_cast<const std::int8_t*>(at) + args_.head_offset;
  }
  float scale(const void* at) const {
    float scale;
    __builtin_memcpy(&scale, static_cast<const char*>(at) + args_.head_scale, sizeof scale);
    return scale;
  }
  void call_ahead(const void* const* at, int i, int n_at) const {
    call_row_ahead(at, i, n_at, args_.head_offset, static_cast<std::size_t>(args_.head_dim));
  }

  // Sixteen keys -> (pairs of dims, 16, 2), pairs kKeyStride apart.
  void lay_keys(const std::int8_t* const (&heads)[kLanes], std::int16_t* to) const {
    constexpr int kTogether = Words::kKeyDims;
    const std::int8_t* parts[kLanes];
    int d = 0;
    for (; d + kTogether <= args_.head_dim; d += kTogether) {
      for (int i = 0; i < kLanes; ++i) parts[i] = heads[i] + d;
      Words::lay_keys(parts, to + static_cast<std::size_t>(d / 2) * kKeyStride, kKeyStride);
    }
    if (d == args_.head_dim) return;
    std::int8_t padded[kLanes][kTogether] = {};
    for (int i = 0; i < kLanes; ++i) {
      __builtin_memcpy(padded[i], heads[i] + d, static_cast<std::size_t>(args_.head_dim - d));
      parts[i] = padded[i];
    }
    Words::lay_keys(parts, to + static_cast<std::size_t>(d / 2) * kKeyStride, kKeyStride);
  }

  // Two values -> (dims, 2), dims padded with zeros.
  void lay_values(const std::int8_t* first, const std::int8_t* second, std::int16_t* to) const {
    constexpr int kTogether = Words::kValueDims;
    int d = 0;
    for (; d + kTogether <= args_.head_dim; d += kTogether) {
      Words::lay_values(first + d, second + d, to + 2 * d);
    }
    if (d == args_.head_dim) return;
    std::int8_t padded[2][kTogether] = {};
    const auto left = static_cast<std::size_t>(args_.head_dim - d);
    __builtin_memcpy(padded[0], first + d, left);
    __builtin_memcpy(padded[1], second + d, left);
    Words::lay_values(padded[0], padded[1], to + 2 * d);
  }

  std::int16_t* query_of(int walk) {
    return queries_ + static_cast<std::size_t>(walk) * n_dim_vectors_ * kLanes;
  }
  int value_stride() const {
    constexpr int kTogether = Words::kValueDims;
    return (args_.head_dim + kTogether - 1) / kTogether * kTogether * 2;
  }

  static constexpr int kKeyStride = kChunkKeys * 2;

  const AttendArgs& args_;
  int n_dim_vectors_;
  Walks walks_;
  float score_scales_[kMostWalks];
  alignas(kLineBytes) float key_scales_[kChunkKeys];
  alignas(kLineBytes) float value_scales_[kChunkKeys];
  float taint_ = 0.0F;  // NaN where a scale of the chunk's values is
  alignas(kLineBytes) float weights_[kMostWalks][kChunkKeys];
  alignas(kLineBytes) std::int16_t words_[kChunkKeys * kMostInt8HeadDim];  // keys or values
  alignas(kLineBytes) std::int16_t queries_[kMostWalks * kMostInt8HeadDim];
};

}  // namespace
}  // namespace outrider::kernels

#endif  // OUTRIDER_KERNELS_INT8_ATTENTION_H_
