// Attention over a vector type V (algorithms.h): for several rows whose walks over the keys begin
// alike, what they share being read once.
#ifndef OUTRIDER_KERNELS_ATTENTION_H_
#define OUTRIDER_KERNELS_ATTENTION_H_

#include <cstddef>
#include <cstdint>

#include "kernels/layout.h"
#include "kernels/table.h"
#include "kernels/vector_math.h"

namespace outrider::kernels {
namespace {

// Longer heads are read where they stand instead of being widened once for all who read them.
constexpr int kMostWidenedDim = 256;
static_assert(kMostInt8HeadDim <= kMostWidenedDim);

// What an element is to be multiplied by.
template <class Element>
float scale_of(const void* at, const AttendArgs& args) {
  float scale = 1.0F;
  if constexpr (sizeof(Element) == 1) {
    __builtin_memcpy(&scale, static_cast<const char*>(at) + args.head_scale, sizeof scale);
  }
  return scale;
}

// Rows of keys (or values) that are called for ahead of the one that is read: they lie in pages of
// some kilobytes, and at the beginning of each the hardware's prefetcher would start anew.
constexpr int kRowsAhead = 16;

// Keys (or values) [first, end) of a chunk as the loops read them: rows[i] is the elements of the
// one at at[i]; of n_at altogether. Those that the loops do not read as they stand (Read is another
// type than Element) are widened into room first.
template <class V, class Element, class Read>
void read_part(const void* const* at, int first, int end, int n_at, const AttendArgs& args,
               float* room, const Read** rows) {
  const int dim = args.head_dim;
  const int stride = (dim + kLanes - 1) / kLanes * kLanes;
  for (int i = first; i < end; ++i) {
    const auto* from = static_cast<const Element*>(at[i]) + args.head_offset;
    if (i + kRowsAhead < n_at) {
      const auto* ahead = static_cast<const Element*>(at[i + kRowsAhead]) + args.head_offset;
      for (int d = 0; d < dim; d += static_cast<int>(kLineBytes / sizeof(Element))) {
        __builtin_prefetch(ahead + d);
      }
    }
    if constexpr (sizeof(Element) == sizeof(Read)) {
      rows[i] = from;
    } else {
      float* to = room + static_cast<std::size_t>(i) * stride;
      rows[i] = to;
      const V scale = V::broadcast(scale_of<Element>(at[i], args));
      const auto widened = [scale](const V& stored) {
        return sizeof(Element) == 1 ? stored * scale : stored;
      };
      int d = 0;
      for (; d + kLanes <= dim; d += kLanes) widened(V::load(from + d)).store(to + d);
      if (d < dim) widened(V::load_first(from + d, dim - d)).store_first(to + d, dim - d);
    }
  }
}

// One query's way over the keys.
struct Walk {
  const float* query;
  float* out;     // the running, unnormalised sum of values
  float highest;  // of the scores so far
  float total;    // of the weights
  // Of the chunk at hand: its scores, then what its values count for. Scores come in groups, which
  // may go beyond the chunk.
  alignas(kLineBytes) float weights[kChunkKeys + kLanes];
};

// step.run<Q>(walks) over all n walks, Q of them at a time: Most, and fewer for the last.
template <int Most, class Step>
void for_walks(Walk* walks, int n, const Step& step) {
  for (; n >= Most; n -= Most, walks += Most) step.template run<Most>(walks);
  if constexpr (Most > 1) {
    if (n > 0) for_walks<Most / 2>(walks, n, step);
  }
}

// The dot products of Q queries with 16 / Q keys each, query after query: each over 16 lanes, added
// up by the one tree. As many keys at a time as the registers hold sums for.
template <class V, class Read, int Q>
[[gnu::always_inline]] inline V dot_sixteen(const Walk* walks, const Read* const* keys, int dim) {
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
      V queries[Q];
      for (int q = 0; q < Q; ++q) queries[q] = V::load(walks[q].query + d);
      for (int i = 0; i < kTogether; ++i) {
        const V key = V::load(keys[first + i] + d);
        for (int q = 0; q < Q; ++q) sums[q][i] = fma(queries[q], key, sums[q][i]);
      }
    }
    if (d < dim) {
      V queries[Q];
      for (int q = 0; q < Q; ++q) queries[q] = V::load_first(walks[q].query + d, dim - d);
      for (int i = 0; i < kTogether; ++i) {
        const V key = V::load_first(keys[first + i] + d, dim - d);
        for (int q = 0; q < Q; ++q) sums[q][i] = fma(queries[q], key, sums[q][i]);
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
  const Read* const* keys;
  int first;
  int n;

  template <int Q>
  void run(Walk* walks) const {
    constexpr int kKeys = kLanes / Q;
    for (int at = first; at < n; at += kKeys) {
      const V scores =
          dot_sixteen<V, Read, Q>(walks, keys + at, args.head_dim) * V::broadcast(args.scale);
      if constexpr (Q == 1) {
        scores.store(walks->weights + at);
      } else {
        alignas(kLineBytes) float each[kLanes];
        scores.store(each);
        for (int q = 0; q < Q; ++q) {
          __builtin_memcpy(walks[q].weights + at, each + q * kKeys, kKeys * sizeof(float));
        }
      }
    }
  }
};

// The scores of a chunk of n keys become weights, and the walk's sum is brought to the new highest
// score.
template <class V>
void weigh(const AttendArgs& args, int n, Walk& walk) {
  float* scores = walk.weights;
  for (int i = n; i < kChunkKeys; ++i) scores[i] = -__builtin_inff();
  V highest_lanes = V::broadcast(walk.highest);
  for (int i = 0; i < kChunkKeys; i += kLanes) {
    highest_lanes = max(highest_lanes, V::load(scores + i));
  }
  const float highest = reduce_max(highest_lanes);
  V sums = V::zero();
  for (int i = 0; i < kChunkKeys; i += kLanes) {
    const V weight = exponential(V::load(scores + i) - V::broadcast(highest));
    weight.store(scores + i);
    sums = sums + weight;
  }
  float factor = 1.0F;
  if (highest != walk.highest) {
    // What the chunks before count for now that the highest score is known better: 0 at first.
    const V shrink = exponential(V::broadcast(walk.highest - highest));
    float lanes[kLanes];
    shrink.store(lanes);
    factor = lanes[0];
    walk.highest = highest;
    const int dim = args.head_dim;
    for (int d = 0; d < dim; d += kLanes) {
      store_at(load_at<V>(walk.out, d, dim) * shrink, walk.out, d, dim);
    }
  }
  walk.total = __builtin_fmaf(walk.total, factor, reduce_add(sums));
}

// Sums += weights times the values [first, n) of a chunk, value after value.
template <class V, class Read>
struct SumStep {
  const AttendArgs& args;
  const Read* const* values;
  int first;
  int n;

  template <int Q>
  void run(Walk* walks) const {
    const int dim = args.head_dim;
    const int d = add<Q, V::kValueSums / Q>(walks, 0);
    if (d == dim) return;
    for (int q = 0; q < Q; ++q) {
      V part = V::load_first(walks[q].out + d, dim - d);
      for (int i = first; i < n; ++i) {
        part = fma(V::broadcast(walks[q].weights[i]), V::load_first(values[i] + d, dim - d), part);
      }
      part.store_first(walks[q].out + d, dim - d);
    }
  }

  // From dim d on, kMany vectors of dims at a time, enough side by side that no addition waits for
  // the one before; then fewer. Returns the first dim that makes up no vector.
  template <int Q, int kMany>
  int add(Walk* walks, int d) const {
    static_assert(kMany > 0);
    for (; d + kMany * kLanes <= args.head_dim; d += kMany * kLanes) add_at<Q, kMany>(walks, d);
    if constexpr (kMany > 1) d = add<Q, kMany / 2>(walks, d);
    return d;
  }

  template <int Q, int kMany>
  [[gnu::always_inline]] void add_at(Walk* walks, int d) const {
    V parts[Q][kMany];
    for (int q = 0; q < Q; ++q) {
      for (int v = 0; v < kMany; ++v) parts[q][v] = V::load(walks[q].out + d + v * kLanes);
    }
    for (int i = first; i < n; ++i) {
      V weight[Q];
      for (int q = 0; q < Q; ++q) weight[q] = V::broadcast(walks[q].weights[i]);
      for (int v = 0; v < kMany; ++v) {
        const V value = V::load(values[i] + d + v * kLanes);
        for (int q = 0; q < Q; ++q) parts[q][v] = fma(weight[q], value, parts[q][v]);
      }
    }
    for (int q = 0; q < Q; ++q) {
      for (int v = 0; v < kMany; ++v) parts[q][v].store(walks[q].out + d + v * kLanes);
    }
  }
};

// Query heads that are worked on together.
constexpr int kMostQueries = 8;

// Softmax while reading (Milakov and Gimelshein 2018, "Online normalizer calculation for softmax"),
// one chunk of positions at a time. Chunks begin at fixed positions, so that a position's
// arithmetic does not depend on how the keys came to be there, nor on who walks along. Element: as
// stored; Read: as the loops read it.
template <class V, class Element, class Read>
class Attention {
 public:
  // n_queries heads from first_query on, at most kMostQueries.
  Attention(const AttendArgs& args, int first_query, int n_queries)
      : args_(args), n_queries_(n_queries) {
    for (int r = 0; r < args.n_rows; ++r) {
      const AttendRow& row = args.rows[r];
      for (int q = 0; q < n_queries; ++q) {
        Walk& walk = walks_of(r)[q];
        const int head = first_query + q;
        walk.query = row.queries + static_cast<std::size_t>(head) * args.query_stride;
        walk.out = row.out + static_cast<std::size_t>(head) * args.out_stride;
        walk.highest = -__builtin_inff();
        walk.total = 0.0F;
        for (int d = 0; d < args.head_dim; ++d) walk.out[d] = 0.0F;
      }
    }
  }

  void run() {
    for (int first = 0; first < args_.n_shared; first += kChunkKeys) {
      const int n_at = args_.n_shared - first;
      read(args_.shared_keys + first, 0, kChunkKeys, n_at);
      score(0, args_.n_rows, 0, kChunkKeys);
      for (int r = 0; r < args_.n_rows; ++r) weigh_row(r, kChunkKeys);
      read(args_.shared_values + first, 0, kChunkKeys, n_at);
      sum(0, args_.n_rows, 0, kChunkKeys);
    }
    int own = args_.n_shared;
    if (args_.n_rows > 1 && args_.n_alike > 0) {
      parting_chunk();
      own += kChunkKeys;
    }
    for (int r = 0; r < args_.n_rows; ++r) {
      for (int first = own; first < args_.rows[r].n_keys; first += kChunkKeys) own_chunk(r, first);
      finish(r);
    }
  }

 private:
  Walk* walks_of(int row) { return walks_ + static_cast<std::size_t>(row) * n_queries_; }

  void read(const void* const* at, int first, int end, int n_at) {
    read_part<V, Element, Read>(at, first, end, n_at, args_, room_, parts_);
    // Groups of keys are whole: the last one again.
    for (int i = end; i > first && i < end + kLanes - 1; ++i) parts_[i] = parts_[end - 1];
  }
  // For n_rows rows from `row` on, the keys or values [first, n) that parts_ shows.
  void score(int row, int n_rows, int first, int n) {
    for_walks<V::kDotQueries>(walks_of(row), n_rows * n_queries_,
                              ScoreStep<V, Read>{args_, parts_, first, n});
  }
  void sum(int row, int n_rows, int first, int n) {
    for_walks<V::kValueQueries>(walks_of(row), n_rows * n_queries_,
                                SumStep<V, Read>{args_, parts_, first, n});
  }
  void weigh_row(int row, int n) {
    for (int q = 0; q < n_queries_; ++q) weigh<V>(args_, n, walks_of(row)[q]);
  }

  // The chunk in which the rows' walks part: what they still share is read once.
  void parting_chunk() {
    const auto n_here = [&](int row) {
      const int left = args_.rows[row].n_keys - args_.n_shared;
      return left < kChunkKeys ? left : kChunkKeys;
    };
    const int n_alike = args_.n_alike;
    read(args_.rows[0].keys, 0, n_alike, n_alike);
    score(0, args_.n_rows, 0, n_alike);
    for (int r = 0; r < args_.n_rows; ++r) {
      const int n = n_here(r);
      read(args_.rows[r].keys, n_alike, n, n);
      score(r, 1, n_alike, n);
      weigh_row(r, n);
    }
    read(args_.rows[0].values, 0, n_alike, n_alike);
    sum(0, args_.n_rows, 0, n_alike);
    for (int r = 0; r < args_.n_rows; ++r) {
      const int n = n_here(r);
      read(args_.rows[r].values, n_alike, n, n);
      sum(r, 1, n_alike, n);
    }
  }

  void own_chunk(int row, int first) {
    const int left = args_.rows[row].n_keys - first;
    const int n = left < kChunkKeys ? left : kChunkKeys;
    const int at = first - args_.n_shared;
    read(args_.rows[row].keys + at, 0, n, left);
    score(row, 1, 0, n);
    weigh_row(row, n);
    read(args_.rows[row].values + at, 0, n, left);
    sum(row, 1, 0, n);
  }

  void finish(int row) {
    for (int q = 0; q < n_queries_; ++q) {
      Walk& walk = walks_of(row)[q];
      const V inverse = V::broadcast(1.0F / walk.total);
      const int dim = args_.head_dim;
      for (int d = 0; d < dim; d += kLanes) {
        store_at(load_at<V>(walk.out, d, dim) * inverse, walk.out, d, dim);
      }
    }
  }

  static constexpr int kRoom = sizeof(Element) == sizeof(Read) ? 1 : kChunkKeys * kMostWidenedDim;

  const AttendArgs& args_;
  int n_queries_;
  Walk walks_[kMostAttendRows * kMostQueries];
  const Read* parts_[kChunkKeys + kLanes];
  alignas(kLineBytes) float room_[kRoom];
};

// With registers enough to widen bf16 where it is used, that costs less than the way to memory and
// back; else keys and values are widened once for all who read them, as int8 always is.
template <class V>
void attend(const AttendArgs& args) {
  for (int q = 0; q < args.n_queries; q += kMostQueries) {
    const int n = args.n_queries - q < kMostQueries ? args.n_queries - q : kMostQueries;
    if (args.kv == KvKind::f32) {
      Attention<V, float, float>(args, q, n).run();
    } else if (args.kv == KvKind::int8) {
      Attention<V, std::int8_t, float>(args, q, n).run();
    } else if (!V::kWidensInPlace && args.head_dim <= kMostWidenedDim) {
      Attention<V, std::uint16_t, float>(args, q, n).run();
    } else {
      Attention<V, std::uint16_t, std::uint16_t>(args, q, n).run();
    }
  }
}

}  // namespace
}  // namespace outrider::kernels

#endif  // OUTRIDER_KERNELS_ATTENTION_H_
