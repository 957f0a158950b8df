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

// Walks over the same keys and values from which on it pays to widen these, and to lay keys out
// side by side, once for all (avx512, heads of 64: for 8 walks 1.03 to 1.05 times as long as
// without).
constexpr int kManyWalks = 16;
// So what a single row reads behind what it shares never is.
static_assert(kManyWalks > kMostQueries);

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
  int calling;  // the walk, the first one, that calls for what comes next; or none
  const HeadsAhead& ahead;

  template <int Q>
  void run(int walk) const {
    constexpr int kKeys = kLanes / Q;
    const float* queries[Q];
    for (int q = 0; q < Q; ++q) queries[q] = walks[walk + q].query;
    for (int at = first; at < n; at += kKeys) {
      if (walk == calling) {
        for (int i = at; i < at + kKeys && i < n; ++i) ahead.call<2>(i);
      }
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

// The same scores where sixteen keys stand side by side, (dims, 64): what are lanes above are terms
// of their own here, from kLane on every kStep-th, which the same tree adds up, key by key. (Where
// lanes above end with a product of zeros, the sign of a zero may differ: no weight shows it.)
template <class V, int Q, int kLane, int kStep>
[[gnu::always_inline]] inline void add_lanes(const float* const (&queries)[Q], const float* columns,
                                             int dim, V (&sums)[Q]) {
  if constexpr (kStep == kLanes) {
    for (int q = 0; q < Q; ++q) sums[q] = V::zero();
    for (int d = kLane; d < dim; d += kLanes) {
      const V keys = V::load(columns + d * kChunkKeys);
      for (int q = 0; q < Q; ++q) sums[q] = fma(V::broadcast(queries[q][d]), keys, sums[q]);
    }
  } else {
    V others[Q];
    add_lanes<V, Q, kLane, kStep * 2>(queries, columns, dim, sums);
    add_lanes<V, Q, kLane + kStep, kStep * 2>(queries, columns, dim, others);
    for (int q = 0; q < Q; ++q) sums[q] = sums[q] + others[q];
  }
}

// Scores of the first n keys of a chunk, in whole groups of sixteen.
template <class V>
struct ColumnScoreStep {
  const AttendArgs& args;
  Walks& walks;
  ChunkWeights* weights;
  const float* columns;
  int n;

  template <int Q>
  void run(int walk) const {
    const float* queries[Q];
    for (int q = 0; q < Q; ++q) queries[q] = walks[walk + q].query;
    for (int at = 0; at < n; at += kLanes) {
      V scores[Q];
      add_lanes<V, Q, 0, 1>(queries, columns + at, args.head_dim, scores);
      for (int q = 0; q < Q; ++q) {
        (scores[q] * V::broadcast(args.scale)).store(weights[walk + q].of + at);
      }
    }
  }
};

template <class V>
struct WeighStep {
  int head_dim;
  int n;
  ChunkWeights* weights;
  Walks& walks;

  template <int Q>
  void run(int walk) const {
    constexpr int kStride = sizeof(ChunkWeights) / sizeof(float);
    weigh<V, PlainWeight<V>, Q>(head_dim, n, weights[walk].of, kStride, &walks[walk]);
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
  int calling;  // as in ScoreStep
  const HeadsAhead& ahead;

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
    const bool calls = walk == calling && d == 0;
    for (int i = first; i < n; ++i) {
      if (calls) ahead.call<2>(i);
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

// The steps of attend_by_chunks. Element: as stored.
template <class V, class Element>
class FloatSteps {
 public:
  FloatSteps(const AttendArgs& args, int first_query, int n_queries)
      : args_(args),
        walks_(args, first_query, n_queries),
        ahead_(args.head_offset, static_cast<std::size_t>(args.head_dim) * sizeof(Element)) {}

  void keys(const void* const* at, int first, int end, int n_at, int n_rows) {
    form_ = form_for(n_rows, V::kColumnDims > 0 ? Form::columns : Form::widened);
    ahead_.follow(at, n_at);
    read(at, first, end);
  }
  void values(const void* const* at, int first, int end, int n_at, int n_rows) {
    form_ = form_for(n_rows, Form::widened);
    ahead_.follow(at, n_at);
    read(at, first, end);
  }
  void alike_scores(int n) { score(0, args_.n_rows, 0, n); }
  void weights(int row, int n_rows, int first, int n) {
    score(row, n_rows, first, n);
    for_walks<V::kWalksWeighed>(walks_.first_of(row), walks_.of_rows(n_rows),
                                WeighStep<V>{args_.head_dim, n, weights_, walks_});
  }
  void alike_sums(int n) { sums(0, args_.n_rows, 0, n); }
  void sums(int row, int n_rows, int first, int n) {
    const int walk = walks_.first_of(row);
    const int n_walks = walks_.of_rows(n_rows);
    if (form_ == Form::stored) {
      for_walks<V::kValueQueries>(
          walk, n_walks,
          SumStep<V, Element>{args_, walks_, weights_, stored_, first, n, walk, ahead_});
    } else {
      for_walks<V::kValueQueries>(
          walk, n_walks,
          SumStep<V, float>{args_, walks_, weights_, widened_, first, n, -1, ahead_});
    }
  }
  void finish(int row) { walks_.template normalise<V>(row); }

 private:
  // How the loops read a chunk's keys or values: as they stand; as floats, in room_; or as floats,
  // in room_, sixteen keys side by side: (dims, 64).
  enum class Form { stored, widened, columns };

  // bf16 that many walks read is brought into the best form once for all of them; for few only
  // where the registers are too few to widen it where it is used.
  Form form_for(int n_rows, Form best) const {
    if (sizeof(Element) == sizeof(float) || args_.head_dim > kMostWidenedDim) return Form::stored;
    if (walks_.of_rows(n_rows) >= kManyWalks) return best;
    return V::kWidensInPlace ? Form::stored : Form::widened;
  }

  void read(const void* const* at, int first, int end) {
    if constexpr (sizeof(Element) == 2 && V::kColumnDims > 0) {
      if (form_ == Form::columns) return lay_columns(at, end);
    }
    if (form_ == Form::stored) {
      for (int i = first; i < end; ++i) stored_[i] = head(at[i]);
      fill_group(stored_, first, end);
    } else {
      for (int i = first; i < end; ++i) {
        widened_[i] = widen(head(at[i]), i);
        ahead_.template call<2>(i);
      }
      fill_group(widened_, first, end);
    }
  }
  // Groups of keys, which begin at `first`, are whole: the last one again.
  template <class Read>
  static void fill_group(const Read** rows, int first, int end) {
    for (int i = end; (i - first) % kLanes != 0; ++i) rows[i] = rows[end - 1];
  }
  const float* widen(const Element* from, int i) {
    const int dim = args_.head_dim;
    float* to = room_ + static_cast<std::size_t>(i) * ((dim + kLanes - 1) / kLanes * kLanes);
    int d = 0;
    for (; d + kLanes <= dim; d += kLanes) V::load(from + d).store(to + d);
    if (d < dim) V::load_first(from + d, dim - d).store_first(to + d, dim - d);
    return to;
  }
  // Whole groups of sixteen: at the end the last one again.
  void lay_columns(const void* const* at, int end) {
    constexpr int kTogether = V::kColumnDims;
    const int dim = args_.head_dim;
    for (int group = 0; group < end; group += kLanes) {
      const Element* keys[kLanes];
      for (int i = 0; i < kLanes; ++i) {
        const int key = group + i < end ? group + i : end - 1;
        ahead_.template call<2>(key);
        keys[i] = head(at[key]);
      }
      const Element* parts[kLanes];
      int d = 0;
      for (; d + kTogether <= dim; d += kTogether) {
        for (int i = 0; i < kLanes; ++i) parts[i] = keys[i] + d;
        V::lay_columns(parts, room_ + d * kChunkKeys + group, kChunkKeys);
      }
      if (d == dim) continue;
      Element padded[kLanes][kTogether] = {};
      for (int i = 0; i < kLanes; ++i) {
        __builtin_memcpy(padded[i], keys[i] + d,
                         static_cast<std::size_t>(dim - d) * sizeof(Element));
        parts[i] = padded[i];
      }
      V::lay_columns(parts, room_ + d * kChunkKeys + group, kChunkKeys);
    }
  }
  const Element* head(const void* at) const {
    return reinterpret_cast<const Element*>(static_cast<const char*>(at) + args_.head_offset);
  }
  // For n_rows rows from `row` on, the keys [first, n) that have been read.
  void score(int row, int n_rows, int first, int n) {
    const int walk = walks_.first_of(row);
    const int n_walks = walks_.of_rows(n_rows);
    switch (form_) {
      case Form::stored:
        for_walks<V::kDotQueries>(
            walk, n_walks,
            ScoreStep<V, Element>{args_, walks_, weights_, stored_, first, n, walk, ahead_});
        break;
      case Form::widened:
        for_walks<V::kDotQueries>(
            walk, n_walks,
            ScoreStep<V, float>{args_, walks_, weights_, widened_, first, n, -1, ahead_});
        break;
      case Form::columns:
        for_walks<V::kDotQueries>(walk, n_walks,
                                  ColumnScoreStep<V>{args_, walks_, weights_, room_, n});
        break;
    }
  }

  static constexpr int kRoom = sizeof(Element) == sizeof(float) ? 1 : kChunkKeys * kMostWidenedDim;

  const AttendArgs& args_;
  Walks walks_;
  HeadsAhead ahead_;
  Form form_ = Form::stored;
  ChunkWeights weights_[kMostWalks];
  const Element* stored_[kChunkKeys + kLanes];
  const float* widened_[kChunkKeys + kLanes];
  alignas(kLineBytes) float room_[kRoom];
};

}  // namespace
}  // namespace outrider::kernels

#endif  // OUTRIDER_KERNELS_FLOAT_ATTENTION_H_
