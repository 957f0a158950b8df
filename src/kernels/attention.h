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
// one at at[i]; of n_at altogether. Narrow ones are widened into room first.
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

// Up to whole groups of kLanes, the last of n again.
template <class Read>
void fill_group(const Read** rows, int n) {
  for (int i = n; i % kLanes != 0; ++i) rows[i] = rows[n - 1];
}

template <class V, class Element, class Read>
void read_chunk(const void* const* at, int n, int n_at, const AttendArgs& args, float* room,
                const Read** rows) {
  read_part<V, Element, Read>(at, 0, n, n_at, args, room, rows);
  fill_group(rows, n);
}

// The dot products of a query with sixteen keys: each over 16 lanes, added up by the one tree. As
// many keys at a time as the registers hold sums for.
template <class V, class Read>
[[gnu::always_inline]] inline V dot_sixteen(const float* query, const Read* const* keys, int dim) {
  static_assert(kLanes % V::kDotKeys == 0);
  V each[kLanes];
  for (int first = 0; first < kLanes; first += V::kDotKeys) {
    V sums[V::kDotKeys];
    for (int i = 0; i < V::kDotKeys; ++i) sums[i] = V::zero();
    int d = 0;
    for (; d + kLanes <= dim; d += kLanes) {
      const V q = V::load(query + d);
      for (int i = 0; i < V::kDotKeys; ++i) {
        sums[i] = fma(q, V::load(keys[first + i] + d), sums[i]);
      }
    }
    if (d < dim) {
      const V q = V::load_first(query + d, dim - d);
      for (int i = 0; i < V::kDotKeys; ++i) {
        sums[i] = fma(q, V::load_first(keys[first + i] + d, dim - d), sums[i]);
      }
    }
    for (int i = 0; i < V::kDotKeys; ++i) each[first + i] = sums[i];
  }
  return reduce_add_each(each);
}

// sums (Q queries, dim) += weights (Q rows of kChunkKeys) times n values, value after value, for
// kMany vectors of dims from d on: enough side by side that no addition waits for the one before.
template <class V, class Read, int Q, int kMany>
[[gnu::always_inline]] inline void add_values_at(const Read* const* values, int n, int d,
                                                 const float* weights, float* sums,
                                                 std::size_t stride) {
  V parts[Q][kMany];
  for (int q = 0; q < Q; ++q) {
    for (int v = 0; v < kMany; ++v) parts[q][v] = V::load(sums + q * stride + d + v * kLanes);
  }
  for (int i = 0; i < n; ++i) {
    V weight[Q];
    for (int q = 0; q < Q; ++q) weight[q] = V::broadcast(weights[q * kChunkKeys + i]);
    for (int v = 0; v < kMany; ++v) {
      const V value = V::load(values[i] + d + v * kLanes);
      for (int q = 0; q < Q; ++q) parts[q][v] = fma(weight[q], value, parts[q][v]);
    }
  }
  for (int q = 0; q < Q; ++q) {
    for (int v = 0; v < kMany; ++v) parts[q][v].store(sums + q * stride + d + v * kLanes);
  }
}

template <class V, class Read, int Q>  // Q is 1 or 2
void add_values(const Read* const* values, int n, int dim, const float* weights, float* sums,
                std::size_t stride) {
  constexpr int kMany = V::kValueSums / Q;
  static_assert(kMany > 0);
  int d = 0;
  for (; d + kMany * kLanes <= dim; d += kMany * kLanes) {
    add_values_at<V, Read, Q, kMany>(values, n, d, weights, sums, stride);
  }
  for (; d + kLanes <= dim; d += kLanes) {
    add_values_at<V, Read, Q, 1>(values, n, d, weights, sums, stride);
  }
  if (d == dim) return;
  for (int q = 0; q < Q; ++q) {
    V part = V::load_first(sums + q * stride + d, dim - d);
    for (int i = 0; i < n; ++i) {
      part = fma(V::broadcast(weights[q * kChunkKeys + i]), V::load_first(values[i] + d, dim - d),
                 part);
    }
    part.store_first(sums + q * stride + d, dim - d);
  }
}

// Where one query's walk stands; its unnormalised sum is in out.
struct Walk {
  float highest;
  float total;
};

// The scores of a chunk become weights, and the walk's sum is brought to the new highest score.
template <class V>
void weigh(float* scores, const AttendArgs& args, Walk& walk, float* out) {
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
  // What the chunks before count for now that the highest score is known better: 0 at first.
  const V shrink = exponential(V::broadcast(walk.highest - highest));
  float factor[kLanes];
  shrink.store(factor);
  walk.total = __builtin_fmaf(walk.total, factor[0], reduce_add(sums));
  walk.highest = highest;
  const int dim = args.head_dim;
  for (int d = 0; d < dim; d += kLanes) store_at(load_at<V>(out, d, dim) * shrink, out, d, dim);
}

// Query heads that are worked on together: their weights stay in the first cache.
constexpr int kMostQueries = 8;

// Takes one row's n_queries heads (from first_query on, at most kMostQueries) over a chunk of n
// keys, then over its values.
template <class V, class Read>
void score_chunk(const AttendArgs& args, const AttendRow& row, int first_query, int n_queries,
                 const Read* const* keys, int n, Walk* walks,
                 float (&weights)[kMostQueries][kChunkKeys]) {
  for (int q = 0; q < n_queries; ++q) {
    const float* query =
        row.queries + static_cast<std::size_t>(first_query + q) * args.query_stride;
    float* scores = weights[q];
    for (int at = 0; at < n; at += kLanes) {
      (dot_sixteen<V>(query, keys + at, args.head_dim) * V::broadcast(args.scale))
          .store(scores + at);
    }
    for (int i = n; i < kChunkKeys; ++i) scores[i] = -__builtin_inff();
    weigh<V>(scores, args, walks[q],
             row.out + static_cast<std::size_t>(first_query + q) * args.out_stride);
  }
}

template <class V, class Read>
void sum_chunk(const AttendArgs& args, const AttendRow& row, int first_query, int n_queries,
               const Read* const* values, int n, const float (&weights)[kMostQueries][kChunkKeys]) {
  float* out = row.out + static_cast<std::size_t>(first_query) * args.out_stride;
  int q = 0;
  for (; q + 2 <= n_queries; q += 2) {
    add_values<V, Read, 2>(values, n, args.head_dim, weights[q], out + q * args.out_stride,
                           args.out_stride);
  }
  if (q < n_queries) {
    add_values<V, Read, 1>(values, n, args.head_dim, weights[q], out + q * args.out_stride,
                           args.out_stride);
  }
}

// The chunk in which the rows' walks part: what they still share is read, and widened, once.
template <class V, class Element, class Read>
void attend_to_parting_chunk(const AttendArgs& args, int first_query, int n_queries, float* room,
                             Walk (&walks)[kMostAttendRows][kMostQueries],
                             float (&weights)[kMostAttendRows][kMostQueries][kChunkKeys]) {
  const Read* parts[kChunkKeys];
  const auto n_here = [&](const AttendRow& row) {
    const int left = row.n_keys - args.n_shared;
    return left < kChunkKeys ? left : kChunkKeys;
  };
  read_part<V, Element, Read>(args.rows[0].keys, 0, args.n_alike, args.n_alike, args, room, parts);
  for (int r = 0; r < args.n_rows; ++r) {
    const AttendRow& row = args.rows[r];
    const int n = n_here(row);
    read_part<V, Element, Read>(row.keys, args.n_alike, n, n, args, room, parts);
    fill_group(parts, n);
    score_chunk<V, Read>(args, row, first_query, n_queries, parts, n, walks[r], weights[r]);
  }
  read_part<V, Element, Read>(args.rows[0].values, 0, args.n_alike, args.n_alike, args, room,
                              parts);
  for (int r = 0; r < args.n_rows; ++r) {
    const AttendRow& row = args.rows[r];
    const int n = n_here(row);
    read_part<V, Element, Read>(row.values, args.n_alike, n, n, args, room, parts);
    sum_chunk<V, Read>(args, row, first_query, n_queries, parts, n, weights[r]);
  }
}

// Softmax while reading (Milakov and Gimelshein 2018, "Online normalizer calculation for softmax"),
// one chunk of positions at a time. Chunks begin at fixed positions, so that a position's
// arithmetic does not depend on how the keys came to be there, nor on who walks along; out holds
// the running, unnormalised sums. Element: as stored; Read: as the loops read it.
template <class V, class Element, class Read>
void attend_to(const AttendArgs& args, int first_query, int n_queries) {
  constexpr int kRoom = sizeof(Element) == sizeof(Read) ? 1 : kChunkKeys * kMostWidenedDim;
  alignas(64) float room[kRoom];
  alignas(64) float weights[kMostAttendRows][kMostQueries][kChunkKeys];
  Walk walks[kMostAttendRows][kMostQueries];
  const Read* parts[kChunkKeys];
  for (int r = 0; r < args.n_rows; ++r) {
    for (int q = 0; q < n_queries; ++q) {
      walks[r][q] = {-__builtin_inff(), 0.0F};
      float* out = args.rows[r].out + static_cast<std::size_t>(first_query + q) * args.out_stride;
      for (int d = 0; d < args.head_dim; ++d) out[d] = 0.0F;
    }
  }
  for (int first = 0; first < args.n_shared; first += kChunkKeys) {
    read_chunk<V, Element, Read>(args.shared_keys + first, kChunkKeys, args.n_shared - first, args,
                                 room, parts);
    for (int r = 0; r < args.n_rows; ++r) {
      score_chunk<V, Read>(args, args.rows[r], first_query, n_queries, parts, kChunkKeys, walks[r],
                           weights[r]);
    }
    read_chunk<V, Element, Read>(args.shared_values + first, kChunkKeys, args.n_shared - first,
                                 args, room, parts);
    for (int r = 0; r < args.n_rows; ++r) {
      sum_chunk<V, Read>(args, args.rows[r], first_query, n_queries, parts, kChunkKeys, weights[r]);
    }
  }
  int own = args.n_shared;
  if (args.n_rows > 1 && args.n_alike > 0) {
    attend_to_parting_chunk<V, Element, Read>(args, first_query, n_queries, room, walks, weights);
    own += kChunkKeys;
  }
  for (int r = 0; r < args.n_rows; ++r) {
    const AttendRow& row = args.rows[r];
    for (int first = own; first < row.n_keys; first += kChunkKeys) {
      const int left = row.n_keys - first;
      const int n = left < kChunkKeys ? left : kChunkKeys;
      const int at = first - args.n_shared;
      read_chunk<V, Element, Read>(row.keys + at, n, left, args, room, parts);
      score_chunk<V, Read>(args, row, first_query, n_queries, parts, n, walks[r], weights[r]);
      read_chunk<V, Element, Read>(row.values + at, n, left, args, room, parts);
      sum_chunk<V, Read>(args, row, first_query, n_queries, parts, n, weights[r]);
    }
    for (int q = 0; q < n_queries; ++q) {
      float* out = row.out + static_cast<std::size_t>(first_query + q) * args.out_stride;
      const V inverse = V::broadcast(1.0F / walks[r][q].total);
      const int dim = args.head_dim;
      for (int d = 0; d < dim; d += kLanes) {
        store_at(load_at<V>(out, d, dim) * inverse, out, d, dim);
      }
    }
  }
}

template <class V>
void attend(const AttendArgs& args) {
  for (int q = 0; q < args.n_queries; q += kMostQueries) {
    const int n = args.n_queries - q < kMostQueries ? args.n_queries - q : kMostQueries;
    if (args.kv == KvKind::f32) {
      attend_to<V, float, float>(args, q, n);
    } else if (args.kv == KvKind::int8) {
      attend_to<V, std::int8_t, float>(args, q, n);
    } else if (args.head_dim <= kMostWidenedDim) {
      attend_to<V, std::uint16_t, float>(args, q, n);
    } else {
      attend_to<V, std::uint16_t, std::uint16_t>(args, q, n);
    }
  }
}

}  // namespace
}  // namespace outrider::kernels

#endif  // OUTRIDER_KERNELS_ATTENTION_H_
