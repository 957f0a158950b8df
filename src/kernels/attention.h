// What attention does whatever its keys and values are: the online softmax over a vector type V
// (algorithms.h), and the order in which several rows, whose walks over the keys begin alike, read
// what they share once. The arithmetic on keys and values stands in float_attention.h and
// laid_attention.h.
#ifndef OUTRIDER_KERNELS_ATTENTION_H_
#define OUTRIDER_KERNELS_ATTENTION_H_

#include <cstddef>

#include "kernels/layout.h"
#include "kernels/table.h"
#include "kernels/vector_math.h"

namespace outrider::kernels {
namespace {

// Query heads that are worked on together.
constexpr int kMostQueries = 8;
constexpr int kMostWalks = kMostAttendRows * kMostQueries;

// Calls for one head of the keys (or values) that stand a chunk behind those that are read: they
// lie in pages of some kilobytes, and at the beginning of each the hardware's prefetcher would
// start anew. A chunk, so that they are under way while this one's scores and sums are computed.
class HeadsAhead {
 public:
  HeadsAhead(std::size_t head_offset, std::size_t n_bytes)
      : head_offset_(head_offset), n_bytes_(n_bytes) {}
  // From now on those behind at[i], of n_at.
  void follow(const void* const* at, int n_at) {
    at_ = at;
    n_at_ = n_at;
  }
  // kCache: the nearest that they are called into, as __builtin_prefetch counts them: 3 the first,
  // 2 the second.
  template <int kCache>
  void call(int i) const {
    if (i + kChunkKeys >= n_at_) return;
    const char* ahead = static_cast<const char*>(at_[i + kChunkKeys]) + head_offset_;
    for (std::size_t line = 0; line < n_bytes_; line += kLineBytes) {
      __builtin_prefetch(ahead + line, 0, kCache);
    }
  }

 private:
  std::size_t head_offset_;
  std::size_t n_bytes_;
  const void* const* at_ = nullptr;
  int n_at_ = 0;
};

template <class V>
struct PlainWeight {
  [[gnu::always_inline]] static V of(V x) { return exponential_of_negative(x); }
};

// One query's way over the keys.
struct Walk {
  const float* query;
  float* out;     // the running, unnormalised sum of values
  float highest;  // of the scores so far
  float total;    // of the weights
};

// The walks of all rows of a call, of query heads [first_query, first_query + n_queries), row after
// row.
class Walks {
 public:
  Walks(const AttendArgs& args, int first_query, int n_queries)
      : n_queries_(n_queries), head_dim_(args.head_dim) {
    for (int r = 0; r < args.n_rows; ++r) {
      const AttendRow& row = args.rows[r];
      for (int q = 0; q < n_queries; ++q) {
        Walk& walk = walks_[first_of(r) + q];
        const int head = first_query + q;
        walk.query = row.queries + static_cast<std::size_t>(head) * args.query_stride;
        walk.out = row.out + static_cast<std::size_t>(head) * args.out_stride;
        walk.highest = -__builtin_inff();
        walk.total = 0.0F;
        for (int d = 0; d < head_dim_; ++d) walk.out[d] = 0.0F;
      }
    }
  }

  // The place of a row's first walk, and how many n_rows rows have.
  int first_of(int row) const { return row * n_queries_; }
  int of_rows(int n_rows) const { return n_rows * n_queries_; }
  Walk& operator[](int i) { return walks_[i]; }

  template <class V>
  void normalise(int row) {
    for (int q = 0; q < n_queries_; ++q) {
      Walk& walk = walks_[first_of(row) + q];
      const V inverse = V::broadcast(1.0F / walk.total);
      for (int d = 0; d < head_dim_; d += kLanes) {
        store_at(load_at<V>(walk.out, d, head_dim_) * inverse, walk.out, d, head_dim_);
      }
    }
  }

 private:
  int n_queries_;
  int head_dim_;
  Walk walks_[kMostWalks];
};

// step.run<Q>(at) over all walks [at, at + n), Q of them at a time: Most, and fewer for the last.
template <int Most, class Step>
void for_walks(int at, int n, const Step& step) {
  for (; n >= Most; n -= Most, at += Most) step.template run<Most>(at);
  if constexpr (Most > 1) {
    if (n > 0) for_walks<Most / 2>(at, n, step);
  }
}

// The scores of a chunk of n keys (each walk's stride floats behind the one before, room for
// kChunkKeys) become weights, and the walks' sums are brought to the new highest scores.
// Weight::of(V): e^x, as exactly as it is to count. Several walks at a time: each is a long chain
// of operations that wait for one another, and those of others fill the gaps.
template <class V, class Weight, int Q>
void weigh(int head_dim, int n, float* scores, int stride, Walk* walks) {
  V highest_lanes[Q];
  for (int q = 0; q < Q; ++q) {
    for (int i = n; i < kChunkKeys; ++i) scores[q * stride + i] = -__builtin_inff();
    highest_lanes[q] = V::broadcast(walks[q].highest);
  }
  for (int i = 0; i < kChunkKeys; i += kLanes) {
    for (int q = 0; q < Q; ++q) {
      highest_lanes[q] = max(highest_lanes[q], V::load(scores + q * stride + i));
    }
  }
  float highest[Q];
  V sums[Q];
  for (int q = 0; q < Q; ++q) {
    highest[q] = reduce_max(highest_lanes[q]);
    sums[q] = V::zero();
  }
  for (int i = 0; i < kChunkKeys; i += kLanes) {
    for (int q = 0; q < Q; ++q) {
      float* at = scores + q * stride + i;
      const V weight = Weight::of(V::load(at) - V::broadcast(highest[q]));
      weight.store(at);
      sums[q] = sums[q] + weight;
    }
  }
  for (int q = 0; q < Q; ++q) {
    Walk& walk = walks[q];
    float factor = 1.0F;
    if (highest[q] != walk.highest) {
      // What the chunks before count for now that the highest score is known better: 0 at first.
      const V shrink = exponential_of_negative(V::broadcast(walk.highest - highest[q]));
      float lanes[kLanes];
      shrink.store(lanes);
      factor = lanes[0];
      walk.highest = highest[q];
      for (int d = 0; d < head_dim; d += kLanes) {
        store_at(load_at<V>(walk.out, d, head_dim) * shrink, walk.out, d, head_dim);
      }
    }
    walk.total = __builtin_fmaf(walk.total, factor, reduce_add(sums[q]));
  }
}

// Softmax while reading (Milakov and Gimelshein 2018, "Online normalizer calculation for softmax"),
// one chunk of positions at a time. Chunks begin at fixed positions, so that a position's
// arithmetic does not depend on how the keys came to be there, nor on who walks along.
//
// Steps offers, for one chunk: keys(at, first, end, n_at) and values(...), which make keys (or
// values) [first, end) of the chunk, at at[first] and so on, the ones that are read from now on,
// n_at addresses standing there altogether; weights(row, n_rows, first, n), of the chunk's n keys
// as they count for n_rows rows, and sums(row, n_rows, first, n), which add its values. Of the
// chunk in which the rows part, [0, first) has been seen by alike_scores(first) and
// alike_sums(first) before, for all rows; elsewhere first is 0. And finish(row).
template <class Steps>
void attend_by_chunks(const AttendArgs& args, Steps& steps) {
  for (int first = 0; first < args.n_shared; first += kChunkKeys) {
    const int n_at = args.n_shared - first;
    steps.keys(args.shared_keys + first, 0, kChunkKeys, n_at, args.n_rows);
    steps.weights(0, args.n_rows, 0, kChunkKeys);
    steps.values(args.shared_values + first, 0, kChunkKeys, n_at, args.n_rows);
    steps.sums(0, args.n_rows, 0, kChunkKeys);
  }
  int own = args.n_shared;
  if (args.n_rows > 1 && args.n_alike > 0) {
    // The chunk in which the rows' walks part: what they still share is read once.
    const int n_alike = args.n_alike;
    const auto n_here = [&](const AttendRow& row) {
      const int left = row.n_keys - args.n_shared;
      return left < kChunkKeys ? left : kChunkKeys;
    };
    steps.keys(args.rows[0].keys, 0, n_alike, n_alike, args.n_rows);
    steps.alike_scores(n_alike);
    for (int r = 0; r < args.n_rows; ++r) {
      const int n = n_here(args.rows[r]);
      steps.keys(args.rows[r].keys, n_alike, n, n, 1);
      steps.weights(r, 1, n_alike, n);
    }
    steps.values(args.rows[0].values, 0, n_alike, n_alike, args.n_rows);
    steps.alike_sums(n_alike);
    for (int r = 0; r < args.n_rows; ++r) {
      const int n = n_here(args.rows[r]);
      steps.values(args.rows[r].values, n_alike, n, n, 1);
      steps.sums(r, 1, n_alike, n);
    }
    own += kChunkKeys;
  }
  for (int r = 0; r < args.n_rows; ++r) {
    const AttendRow& row = args.rows[r];
    for (int first = own; first < row.n_keys; first += kChunkKeys) {
      const int left = row.n_keys - first;
      const int n = left < kChunkKeys ? left : kChunkKeys;
      const int at = first - args.n_shared;
      steps.keys(row.keys + at, 0, n, left, 1);
      steps.weights(r, 1, 0, n);
      steps.values(row.values + at, 0, n, left, 1);
      steps.sums(r, 1, 0, n);
    }
    steps.finish(r);
  }
}

template <class Steps>
void attend_with(const AttendArgs& args) {
  for (int q = 0; q < args.n_queries; q += kMostQueries) {
    const int n = args.n_queries - q < kMostQueries ? args.n_queries - q : kMostQueries;
    Steps steps(args, q, n);
    attend_by_chunks(args, steps);
  }
}

}  // namespace
}  // namespace outrider::kernels

#endif  // OUTRIDER_KERNELS_ATTENTION_H_
