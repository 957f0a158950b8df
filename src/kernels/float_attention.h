// Attention over keys and values in f32 and bf16, in floats: a score is a dot product over 16 lanes
// added up by the one tree, and values are added one after the other (attention.h has the rest).
#ifndef OUTRIDER_KERNELS_FLOAT_ATTENTION_H_
#define OUTRIDER_KERNELS_FLOAT_ATTENTION_H_

#include <cstddef>
#include <cstdint>

#include "kernels/attention.h"
#include "kernels/layout.h"
#include "kernels/table.h"
#include "kernels/vector_math.h"

namespace outrider::kernels {
namespace {

// Longer heads are read where they stand instead of being widened once for all who read them.
constexpr int kMostWidenedDim = 256;

// A chunk's scores for each walk, then what its values count for. Scores come in groups, which may
// go beyond the chunk.
struct alignas(kLineBytes) ChunkWeights {
  float of[kChunkKeys + kLanes];
};

// The dot products of Q queries with 16 / Q keys each, query after query: each over 16 lanes, added
// up by the one tree. As many keys at a time as the registers hold sums for.
template <class V, class Read, int Q>
[[gnu::always_inline]] inline V dot_sixteen(const float* const (&queries)[Q],
                                            const Read* const* keys, int dim) {
  constexpr int kKeys = kLanes / Q;
  constexpr int kTogether = V::kDotSums / Q;
  static_assert(kTogether > 0 && kKeys % kTogether == 0);
  V each[kLanes];
  for (int first = 0; first < kKeys; first += kTogether) {
    V sums[Q][kTogether];
    for (int q = 0; q < Q; ++q) {
      for (int i = 0; i < kTogether; ++i) sums[q][i] = V::zero();
    }
    // (Written out twice: a lambda that adds would keep the sums in memory where there are few
    // registers.)
    int d = 0;
    for (; d + kLanes <= dim; d += kLanes) {
      V parts[Q];
      for (int q = 0; q < Q; ++q) parts[q] = V::load(queries[q] + d);
      for (int i = 0; i < kTogether; ++i) {
        const V key = V::load(keys[first + i] + d);
        for (int q = 0; q < Q; ++q) sums[q][i] = fma(parts[q], key, sums[q][i]);
      }
    }
    if (d < dim) {
      V parts[Q];
      for (int q = 0; q < Q; ++q) parts[q] = V::load_first(queries[q] + d, dim - d);
      for (int i = 0; i < kTogether; ++i) {
        const V key = V::load_first(keys[first + i] + d, dim - d);
        for (int q = 0; q < Q; ++q) sums[q][i] = fma(parts[q], key, sums[q][i]);
      }
    }
    for (int q = 0; q < Q; ++q) {
      for (int i = 0; i < kTogether; ++i) each[q * kKeys + first + i] = sums[q][i];
    }
  }
  return reduce_add_each(each);
}

// Scores of the keys [first, n) of a chunk, and of what stands up to kLanes - 1 behind them.
template <class V, class Read>
struct ScoreStep {
  const AttendArgs& args;
  Walks& walks;
  ChunkWeights* weights;
  const Read* const* keys;
  int first;
  int n;

  template <int Q>
  void run(int walk) const {
    constexpr int kKeys = kLanes / Q;
    const float* queries[Q];
    for (int q = 0; q < Q; ++q) queries[q] = walks[walk + q].query;
    for (int at = first; at < n; at += kKeys) {
      const V scores =
          dot_sixteen<V, Read, Q>(queries, keys + at, args.head_dim) * V::broadcast(args.scale);
      if constexpr (Q == 1) {
        scores.store(weights[walk].of + at);
      } else {
        alignas(kLineBytes) float each[kLanes];
        scores.store(each);
        for (int q = 0; q < Q; ++q) {
          __builtin_memcpy(weights[walk + q].of + at, each + q * kKeys, kKeys * sizeof(float));
        }
      }
    }
  }
};

// Sums += weights times the values [first, n) of a chunk, value after value.
template <class V, class Read>
struct SumStep {
  const AttendArgs& args;
  Walks& walks;
  const ChunkWeights* weights;
  const Read* const* values;
  int first;
  int n;

  template <int Q>
  void run(int walk) const {
    const int dim = args.head_dim;
    const int d = add<Q, V::kValueSums / Q>(walk, 0);
    if (d == dim) return;
    for (int q = 0; q < Q; ++q) {
      float* out = walks[walk + q].out + d;
      V part = V::load_first(out, dim - d);
      for (int i = first; i < n; ++i) {
        part =
            fma(V::broadcast(weights[walk + q].of[i]), V::load_first(values[i] + d, dim - d), part);
      }
      part.store_first(out, dim - d);
    }
  }

  // From dim d on, kMany vectors of dims at a time, enough side by side that no addition waits for
  // the one before; then fewer. Returns the first dim that makes up no vector.
  template <int Q, int kMany>
  int add(int walk, int d) const {
    static_assert(kMany > 0);
    for (; d + kMany * kLanes <= args.head_dim; d += kMany * kLanes) add_at<Q, kMany>(walk, d);
    if constexpr (kMany > 1) d = add<Q, kMany / 2>(walk, d);
    return d;
  }

  template <int Q, int kMany>
  [[gnu::always_inline]] void add_at(int walk, int d) const {
    float* out[Q];
    V parts[Q][kMany];
    for (int q = 0; q < Q; ++q) {
      out[q] = walks[walk + q].out + d;
      for (int v = 0; v < kMany; ++v) parts[q][v] = V::load(out[q] + v * kLanes);
    }
    for (int i = first; i < n; ++i) {
      V weight[Q];
      for (int q = 0; q < Q; ++q) weight[q] = V::broadcast(weights[walk + q].of[i]);
      for (int v = 0; v < kMany; ++v) {
        const V value = V::load(values[i] + d + v * kLanes);
        for (int q = 0; q < Q; ++q) parts[q][v] = fma(weight[q], value, parts[q][v]);
      }
    }
    for (int q = 0; q < Q; ++q) {
      for (int v = 0; v < kMany; ++v) parts[q][v].store(out[q] + v * kLanes);
    }
  }
};

// The steps of attend_by_chunks. Element: as stored; Read: as the loops read it.
template <class V, class Element, class Read>
class FloatSteps {
 public:
  FloatSteps(const AttendArgs& args, int first_query, int n_queries)
      : args_(args), walks_(args, first_query, n_queries) {}

  void keys(const void* const* at, int first, int end, int n_at) { read(at, first, end, n_at); }
  void values(const void* const* at, int first, int end, int n_at) { read(at, first, end, n_at); }
  void alike_scores(int n) { score(0, args_.n_rows, 0, n); }
  void weights(int row, int n_rows, int first, int n) {
    score(row, n_rows, first, n);
    const int begin = walks_.first_of(row);
    for (int i = begin; i < begin + walks_.of_rows(n_rows); ++i) {
      weigh<V>(args_.head_dim, n, weights_[i].of, walks_[i]);
    }
  }
  void alike_sums(int n) { sums(0, args_.n_rows, 0, n); }
  void sums(int row, int n_rows, int first, int n) {
    for_walks<V::kValueQueries>(walks_.first_of(row), walks_.of_rows(n_rows),
                                SumStep<V, Read>{args_, walks_, weights_, parts_, first, n});
  }
  void finish(int row) { walks_.template normalise<V>(row); }

 private:
  // parts_[i] becomes the elements of the one at at[i]. Those that the loops do not read as they
  // stand (Read is another type than Element) are widened into room first.
  void read(const void* const* at, int first, int end, int n_at) {
    const int dim = args_.head_dim;
    const int stride = (dim + kLanes - 1) / kLanes * kLanes;
    for (int i = first; i < end; ++i) {
      const Element* from = head(at[i]);
      if (i + kRowsAhead < n_at) {
        const Element* ahead = head(at[i + kRowsAhead]);
        for (int d = 0; d < dim; d += static_cast<int>(kLineBytes / sizeof(Element))) {
          __builtin_prefetch(ahead + d);
        }
      }
      if constexpr (sizeof(Element) == sizeof(Read)) {
        parts_[i] = from;
      } else {
        float* to = room_ + static_cast<std::size_t>(i) * stride;
        parts_[i] = to;
        int d = 0;
        for (; d + kLanes <= dim; d += kLanes) V::load(from + d).store(to + d);
        if (d < dim) V::load_first(from + d, dim - d).store_first(to + d, dim - d);
      }
    }
    // Groups of keys are whole: the last one again.
    for (int i = end; i > first && i < end + kLanes - 1; ++i) parts_[i] = parts_[end - 1];
  }
  const Element* head(const void* at) const {
    return reinterpret_cast<const Element*>(static_cast<const char*>(at) + args_.head_offset);
  }
  // For n_rows rows from `row` on, the keys [first, n) that parts_ shows.
  void score(int row, int n_rows, int first, int n) {
    for_walks<V::kDotQueries>(walks_.first_of(row), walks_.of_rows(n_rows),
                              ScoreStep<V, Read>{args_, walks_, weights_, parts_, first, n});
  }

  static constexpr int kRoom = sizeof(Element) == sizeof(Read) ? 1 : kChunkKeys * kMostWidenedDim;

  const AttendArgs& args_;
  Walks walks_;
  ChunkWeights weights_[kMostWalks];
  const Read* parts_[kChunkKeys + kLanes];
  alignas(kLineBytes) float room_[kRoom];
};

template <class V, class Element, class Read>
void attend_in_floats(const AttendArgs& args) {
  for (int q = 0; q < args.n_queries; q += kMostQueries) {
    const int n = args.n_queries - q < kMostQueries ? args.n_queries - q : kMostQueries;
    FloatSteps<V, Element, Read> steps(args, q, n);
    attend_by_chunks(args, steps);
  }
}

template <class V>
void attend_f32(const AttendArgs& args) {
  attend_in_floats<V, float, float>(args);
}

// With registers enough to widen bf16 where it is used, that costs less than the way to memory and
// back; else keys and values are widened once for all who read them.
template <class V>
void attend_bf16(const AttendArgs& args) {
  if (!V::kWidensInPlace && args.head_dim <= kMostWidenedDim) {
    attend_in_floats<V, std::uint16_t, float>(args);
  } else {
    attend_in_floats<V, std::uint16_t, std::uint16_t>(args);
  }
}

}  // namespace
}  // namespace outrider::kernels

#endif  // OUTRIDER_KERNELS_FLOAT_ATTENTION_H_
