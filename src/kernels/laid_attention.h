// Attention over keys and values that are laid out, chunk by chunk, for instructions that multiply
// pairs of 16-bit numbers: a vector of sixteen pairs, one of each column, with one pair of a row
// (attention.h has the rest, int8_attention.h and bf16_attention.h what the numbers are).
#ifndef OUTRIDER_KERNELS_LAID_ATTENTION_H_
#define OUTRIDER_KERNELS_LAID_ATTENTION_H_

#include <cstddef>

#include "kernels/attention.h"
#include "kernels/layout.h"
#include "kernels/table.h"
#include "kernels/vector_math.h"

namespace outrider::kernels {
namespace {

// use(q, vector, dots): of n_vectors vectors of 16 columns, side by side in (n_pairs, n_vectors,
// 16, 2) words with pairs stride apart, the dot products with each of Q rows of words, row_stride
// apart.
template <class V, class Pairs, int Q, int T, class Word, class Use>
void for_dots(const Word* columns, int n_vectors, int stride, int n_pairs, const Word* rows,
              int row_stride, int vector, const Use& use) {
  for (; vector + T <= n_vectors; vector += T) {
    V dots[Q][T];
    Pairs::template dots<Q, T>(columns + vector * 2 * kLanes, stride, n_pairs, rows, row_stride,
                               dots);
    for (int q = 0; q < Q; ++q) {
      for (int t = 0; t < T; ++t) use(q, vector + t, dots[q][t]);
    }
  }
  if constexpr (T > 1) {
    if (vector < n_vectors) {
      for_dots<V, Pairs, Q, T / 2>(columns, n_vectors, stride, n_pairs, rows, row_stride, vector,
                                   use);
    }
  }
}

// The steps of attend_by_chunks.
//
// Pairs (algorithms.h): the instruction set's products, and how what is stored becomes columns for
// them. Numbers: how queries and weights become rows of words, and what the dot products of those
// stand for. It offers
//
//   Weight                        what weigh() takes: the last step of a weight
//   query(i, x, n, words)         the walk's query x (n) -> words, zeros behind them
//   key(i, at), value(i, at)      the chunk's i-th key (value), the token's stand at that address
//   score(i, vector, dots)        the walk's scores of 16 keys
//   begin_sums(n)                 the chunk's n values are all there
//   weights(from, words)          a chunk's weights -> words; the return value is what one counts
//                                 for
//   sum(dots, scale, out)         out + the values' sum
//
// A chunk's keys, then its values, are laid out once for all walks. In the chunk in which rows
// part, each row lays out its own behind what is alike, and goes over the whole chunk anew: so its
// sums are the same as if nobody walked along.
template <class V, class Pairs, class Numbers>
class LaidSteps {
 public:
  using Stored = typename Pairs::Stored;
  using Word = typename Pairs::Word;

  LaidSteps(const AttendArgs& args, int first_query, int n_queries)
      : args_(args),
        n_dim_vectors_((args.head_dim + kLanes - 1) / kLanes),
        n_dim_pairs_(whole_pairs(args.head_dim)),
        query_stride_((2 * n_dim_pairs_ + kLanes - 1) / kLanes * kLanes),
        value_stride_(2 * whole(args.head_dim, Pairs::kValueDims)),
        walks_(args, first_query, n_queries),
        numbers_(args),
        ahead_(args.head_offset, static_cast<std::size_t>(args.head_dim) * sizeof(Stored)) {
    for (int i = 0; i < walks_.of_rows(args.n_rows); ++i) {
      numbers_.query(i, walks_[i].query, args.head_dim, query_of(i), query_stride_);
    }
  }

  // Whole groups of sixteen: before `first` those that stand in its group, at the end the last one
  // again.
  void keys(const void* const* at, int first, int end, int n_at, int) {
    ahead_.follow(at, n_at);
    for (int group = first / kLanes * kLanes; group < end; group += kLanes) {
      const Stored* heads[kLanes];
      for (int i = 0; i < kLanes; ++i) {
        const int key = group + i < end ? group + i : end - 1;
        call_ahead(key);
        heads[i] = head(at[key]);
        numbers_.key(group + i, at[key]);
      }
      lay_keys(heads, words_ + group * 2);
    }
  }

  // Whole pairs, and as many as go together: zeros at the end.
  void values(const void* const* at, int first, int end, int n_at, int) {
    static constexpr Stored kZeros[kMostLaidHeadDim] = {};
    ahead_.follow(at, n_at);
    Word* to = words_ + static_cast<std::size_t>(first / 2) * value_stride_;
    for (int i = first / 2 * 2; i < end; i += 2, to += value_stride_) {
      call_ahead(i);
      numbers_.value(i, at[i]);
      const bool whole = i + 1 < end;
      if (whole) {
        call_ahead(i + 1);
        numbers_.value(i + 1, at[i + 1]);
      }
      lay_values(head(at[i]), whole ? head(at[i + 1]) : kZeros, to);
    }
    for (int pair = (end + 1) / 2; pair < whole_pairs(end); ++pair, to += value_stride_) {
      lay_values(kZeros, kZeros, to);
    }
  }

  void alike_scores(int) {}
  void alike_sums(int) {}
  void weights(int row, int n_rows, int, int n) {
    for_walks<Pairs::kRows>(walks_.first_of(row), walks_.of_rows(n_rows), WeightStep{*this, n});
  }
  void sums(int row, int n_rows, int, int n) {
    numbers_.begin_sums(n);
    for_walks<Pairs::kRows>(walks_.first_of(row), walks_.of_rows(n_rows), SumStep{*this, n});
  }
  void finish(int row) { walks_.template normalise<V>(row); }

 private:
  struct WeightStep {
    LaidSteps& steps;
    int n;
    template <int Q>
    void run(int walk) const {
      steps.weigh_walks<Q>(walk, n);
    }
  };
  struct SumStep {
    LaidSteps& steps;
    int n;
    template <int Q>
    void run(int walk) const {
      steps.sum_walks<Q>(walk, n);
    }
  };

  template <int Q>
  void weigh_walks(int walk, int n) {
    for_dots<V, Pairs, Q, Pairs::kVectors>(
        words_, (n + kLanes - 1) / kLanes, kKeyStride, n_dim_pairs_, query_of(walk), query_stride_,
        0, [&](int q, int vector, const V& dots) {
          numbers_.score(walk + q, vector, dots).store(weights_[walk + q] + vector * kLanes);
        });
    constexpr int kTogether = Q < V::kWalksWeighed ? Q : V::kWalksWeighed;
    for (int q = 0; q < Q; q += kTogether) {
      weigh<V, typename Numbers::Weight, kTogether>(args_.head_dim, n, weights_[walk + q],
                                                    kChunkKeys, &walks_[walk + q]);
    }
  }

  template <int Q>
  void sum_walks(int walk, int n) {
    alignas(kLineBytes) Word words[Pairs::kRows][kChunkKeys];
    float scales[Q];
    for (int q = 0; q < Q; ++q) scales[q] = numbers_.weights(weights_[walk + q], words[q]);
    for_dots<V, Pairs, Q, Pairs::kVectors>(
        words_, n_dim_vectors_, value_stride_, whole_pairs(n), words[0], kChunkKeys, 0,
        [&](int q, int vector, const V& dots) {
          float* out = walks_[walk + q].out;
          const int d = vector * kLanes;
          const V sum = Numbers::sum(dots, scales[q], load_at<V>(out, d, args_.head_dim));
          store_at(sum, out, d, args_.head_dim);
        });
  }

  static constexpr int whole(int n, int of) { return (n + of - 1) / of * of; }
  // Pairs that n numbers make, as many as go together.
  static constexpr int whole_pairs(int n) { return whole((n + 1) / 2, Pairs::kPairsTogether); }

  const Stored* head(const void* at) const {
    return reinterpret_cast<const Stored*>(static_cast<const char*>(at) + args_.head_offset);
  }
  // Into the second cache, but for int8: a head and its scale lie across lines, and would come from
  // there twice.
  [[gnu::always_inline]] void call_ahead(int i) const {
    ahead_.template call<sizeof(Stored) == 1 ? 3 : 2>(i);
  }

  // Sixteen keys -> (pairs of dims, 16, 2), pairs kKeyStride apart; zeros behind the last dim.
  void lay_keys(const Stored* const (&heads)[kLanes], Word* to) const {
    constexpr int kTogether = Pairs::kKeyDims;
    static_assert(kTogether % (2 * Pairs::kPairsTogether) == 0);
    const Stored* parts[kLanes];
    int d = 0;
    for (; d + kTogether <= args_.head_dim; d += kTogether) {
      for (int i = 0; i < kLanes; ++i) parts[i] = heads[i] + d;
      Pairs::lay_keys(parts, to + static_cast<std::size_t>(d / 2) * kKeyStride, kKeyStride);
    }
    if (d == args_.head_dim) return;
    Stored padded[kLanes][kTogether] = {};
    for (int i = 0; i < kLanes; ++i) {
      __builtin_memcpy(padded[i], heads[i] + d,
                       static_cast<std::size_t>(args_.head_dim - d) * sizeof(Stored));
      parts[i] = padded[i];
    }
    Pairs::lay_keys(parts, to + static_cast<std::size_t>(d / 2) * kKeyStride, kKeyStride);
  }

  // Two values -> (dims, 2), dims padded with zeros.
  void lay_values(const Stored* first, const Stored* second, Word* to) const {
    constexpr int kTogether = Pairs::kValueDims;
    int d = 0;
    for (; d + kTogether <= args_.head_dim; d += kTogether) {
      Pairs::lay_values(first + d, second + d, to + 2 * d);
    }
    if (d == args_.head_dim) return;
    Stored padded[2][kTogether] = {};
    const std::size_t left = static_cast<std::size_t>(args_.head_dim - d) * sizeof(Stored);
    __builtin_memcpy(padded[0], first + d, left);
    __builtin_memcpy(padded[1], second + d, left);
    Pairs::lay_values(padded[0], padded[1], to + 2 * d);
  }

  Word* query_of(int walk) { return queries_ + static_cast<std::size_t>(walk) * query_stride_; }

  static constexpr int kKeyStride = kChunkKeys * 2;
  static_assert(kMostLaidHeadDim % Pairs::kKeyDims == 0 &&
                kMostLaidHeadDim % Pairs::kValueDims == 0);
  static_assert(kChunkKeys % (2 * Pairs::kPairsTogether) == 0);

  const AttendArgs& args_;
  int n_dim_vectors_;
  int n_dim_pairs_;
  int query_stride_;
  int value_stride_;
  Walks walks_;
  Numbers numbers_;
  HeadsAhead ahead_;
  alignas(kLineBytes) float weights_[kMostWalks][kChunkKeys];
  alignas(kLineBytes) Word words_[kChunkKeys * kMostLaidHeadDim];  // keys or values
  // Behind the last walk's, what is read and has no effect where so many rows go together.
  alignas(kLineBytes) Word queries_[(kMostWalks + Pairs::kRows - 1) * kMostLaidHeadDim];
};

}  // namespace
}  // namespace outrider::kernels

#endif  // OUTRIDER_KERNELS_LAID_ATTENTION_H_
