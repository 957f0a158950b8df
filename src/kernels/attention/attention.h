// SPDX-License-Identifier: Apache-2.0
// Attention over keys and values stored in the layout of their products (kv_layout.h): the online
// softmax over a vector type V, chunk by chunk, and the order in which several rows read shared
// chunks once. The products and their numbers are in float_attention.h, int8_attention.h and
// bf16_attention.h; products_and_numbers.h says what these must offer.
#ifndef OUTRIDER_KERNELS_ATTENTION_ATTENTION_H_
#define OUTRIDER_KERNELS_ATTENTION_ATTENTION_H_

#include <cstddef>

#include "kernels/attention/keys_to_values.h"
#include "kernels/attention/kv_layout.h"
#include "kernels/attention/products_and_numbers.h"
#include "kernels/layout.h"
#include "kernels/table.h"
#include "kernels/vectors/float_vector.h"
#include "kernels/vectors/vector_math.h"

namespace outrider::kernels {
namespace {

// Query heads processed together.
constexpr int kMaxQueries = kMaxAttendQueries;
constexpr int kMaxQueryStates = kMaxAttendRows * kMaxQueries;

template <FloatVector V>
struct PlainWeight {
  [[gnu::always_inline]] static V of(V x) { return exponential_of_negative(x); }
};

// One query's state while it reads the keys.
struct QueryState {
  const float* query;
  float* out;     // the running sum of weights times values
  float highest;  // of the scores so far
  float total;    // of the weights
};

// The states of all rows of a call, for query heads [first_query, first_query + n_queries), row
// after row.
class QueryStates {
 public:
  QueryStates(const AttendArgs& args, int first_query, int n_queries) : n_queries_(n_queries) {
    for (int r = 0; r < args.n_rows; ++r) {
      const AttendRow& row = args.rows[r];
      for (int q = 0; q < n_queries; ++q) {
        QueryState& state = states_[first_of(r) + q];
        const int head = first_query + q;
        state.query = row.queries + static_cast<std::size_t>(head) * args.query_stride;
        state.out = row.out + static_cast<std::size_t>(head) * args.out_stride;
        state.highest = -__builtin_inff();
        state.total = 0.0F;
        for (int d = 0; d < args.value_dim(); ++d) state.out[d] = 0.0F;
      }
    }
  }

  // The index of a row's first state; the row of a state; and the number of states of n_rows rows.
  int first_of(int row) const { return row * n_queries_; }
  int row_of(int index) const { return index / n_queries_; }
  int of_rows(int n_rows) const { return n_rows * n_queries_; }
  QueryState& operator[](int i) { return states_[i]; }

  void store_states(int row, AttendState* states) const {
    for (int q = 0; q < n_queries_; ++q) {
      const QueryState& state = states_[first_of(row) + q];
      states[q] = {.highest = state.highest, .total = state.total};
    }
  }

 private:
  int n_queries_;
  QueryState states_[kMaxQueryStates];
};

// Calls step<R>(at) over all states [at, at + n), R of them at a time: Max, and fewer for the last.
template <int Max, class Step>
void for_query_states(int at, int n, const Step& step) {
  for (; n >= Max; n -= Max, at += Max) step.template operator()<Max>(at);
  if constexpr (Max > 1) {
    if (n > 0) for_query_states<Max / 2>(at, n, step);
  }
}

// e^x for x <= 0, as a number and as a vector.
template <FloatVector V>
struct Factor {
  explicit Factor(float x) : of_all(exponential_of_negative(V::broadcast(x))) {
    float lanes[kLanes];
    of_all.store(lanes);
    of_one = lanes[0];
  }
  V of_all;
  float of_one;
};

// The reference value for weights of scores with this maximum: a finite value if no score is above
// -infinity, so that all weights are 0.
inline float weighed_beside(float highest) { return highest == -__builtin_inff() ? 0.0F : highest; }

// Turns the scores of a chunk of n keys (a row for each state) into weights, and rescales the
// states' sums to the new highest scores. Weight::of(V): e^x, at the required precision. Several
// states are processed together: each is a chain of dependent operations, and those of other states
// fill the latency.
template <FloatVector V, AttentionWeight<V> Weight, int Q>
void weigh(int value_dim, int n, float (*scores)[kChunkKeys], QueryState* states) {
  V highest_lanes[Q];
  for (int q = 0; q < Q; ++q) {
    for (int i = n; i < kChunkKeys; ++i) scores[q][i] = -__builtin_inff();
    highest_lanes[q] = V::broadcast(states[q].highest);
  }
  for (int i = 0; i < kChunkKeys; i += kLanes) {
    for (int q = 0; q < Q; ++q) {
      highest_lanes[q] = max(highest_lanes[q], V::load(scores[q] + i));
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
      float* at = scores[q] + i;
      const V weight = Weight::of(V::load(at) - V::broadcast(weighed_beside(highest[q])));
      weight.store(at);
      sums[q] = sums[q] + weight;
    }
  }
  for (int q = 0; q < Q; ++q) {
    QueryState& state = states[q];
    float factor = 1.0F;
    if (highest[q] != state.highest) {
      // The factor of earlier chunks under the new highest score: 0 at first.
      const Factor<V> shrink(state.highest - highest[q]);
      factor = shrink.of_one;
      state.highest = highest[q];
      for (int d = 0; d < value_dim; d += kLanes) {
        store_at(load_at<V>(state.out, d, value_dim) * shrink.of_all, state.out, d, value_dim);
      }
    }
    state.total = __builtin_fmaf(state.total, factor, reduce_add(sums[q]));
  }
}

// A block of cells (kv_layout.h), and the same block of the next chunk. Keys and values are
// prefetched one chunk ahead, row by row, while this chunk's scores and sums are computed.
struct Cells {
  const std::byte* at;
  std::size_t row_bytes;
  const std::byte* ahead;
};

// Calls use(r, vector, dots) with the dot products of R rows of n numbers and vectors [vector,
// n_vectors) of 16 columns of cells.
template <FloatVector V, class Products, bool kCalls, int R, int T, class Rows, class Use>
void for_dots(const Cells& cells, int n, const Rows& rows, int vector, int n_vectors,
              const Use& use) {
  for (; vector + T <= n_vectors; vector += T) {
    const std::size_t at = static_cast<std::size_t>(vector) * kLineBytes;
    Products::template dots<R, T>(cells.at + at, cells.row_bytes, n, rows,
                                  CellsAhead<kCalls>{cells.ahead + at},
                                  [&](int r, int t, const V& dots) { use(r, vector + t, dots); });
  }
  if constexpr (T > 1) {
    if (vector < n_vectors) {
      for_dots<V, Products, kCalls, R, T / 2>(cells, n, rows, vector, n_vectors, use);
    }
  }
}

// Calls use(r, t) for all of R rows and T vectors, unrolled, so that sums stay in registers.
template <int R, int T, class Use>
[[gnu::always_inline]] inline void for_sums(const Use& use) {
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int t = 0; t < T; ++t) use(r, t);
  }
}

// A chunk in which not all positions are slots of the same number, assembled for one row of a tree.
class AssembledChunk {
 public:
  AssembledChunk(const KvLayout& layout, void* scratch)
      : layout_(layout), keys_(static_cast<std::byte*>(scratch)) {}

  // keys(slot chunk), values(slot chunk): the addresses of the slots' blocks; has_values: whether
  // there are blocks of values. The first n_contiguous of the chunk's n positions are in place, the
  // others are in the given slots.
  template <class Keys, class Values>
  void assemble(int chunk, int n_contiguous, int n, const int* slots, const Keys& keys,
                const Values& values, bool has_values) {
    if (chunk != chunk_) n_same_ = 0;
    chunk_ = chunk;
    // Positions that the previous row had in place are here already.
    if (n_contiguous > n_same_) {
      layout_.copy_first_keys(keys(chunk), keys_, n_contiguous);
      if (has_values) layout_.copy_first_values(values(chunk), values_at(), n_contiguous);
    }
    n_same_ = n_contiguous;
    for (int i = n_contiguous; i < n; ++i) {
      const int slot = slots[i - n_contiguous];
      layout_.copy_key(keys(slot / kChunkKeys), slot % kChunkKeys, keys_, i);
      if (!has_values) continue;
      layout_.copy_value(values(slot / kChunkKeys), slot % kChunkKeys, values_at(), i);
    }
  }
  const std::byte* keys() const { return keys_; }
  const std::byte* values() const { return values_at(); }

 private:
  std::byte* values_at() const { return keys_ + layout_.block_bytes(); }

  const KvLayout& layout_;
  std::byte* keys_;
  int chunk_ = -1;
  int n_same_ = 0;
};

// The values of a chunk whose keys contain them: the keys' first dims, transposed into a block of
// values. So sums have the bits of values stored in the cache. All states that read the chunk share
// the cost.
class ValuesOfKeys {
 public:
  // scratch: memory for two blocks (AttendArgs), of which the first is AssembledChunk's.
  ValuesOfKeys(const KvLayout& layout, void* scratch, int n_dims)
      : layout_(layout), values_(static_cast<std::byte*>(scratch)), n_dims_(n_dims) {}

  // The values of the chunk's first n tokens. stays: the address will hold the same keys next time.
  const std::byte* transposed(const std::byte* keys, int n, bool stays) {
    std::byte* const values = values_ + layout_.block_bytes();
    const int n_done = keys == of_ ? n_done_ : 0;
    if (n > n_done) copy_keys_to_values(layout_, keys, values, n_dims_, n_done, n);
    of_ = stays ? keys : nullptr;
    n_done_ = n > n_done ? n : n_done;
    return values;
  }

 private:
  const KvLayout& layout_;
  std::byte* values_;
  int n_dims_;
  const std::byte* of_ = nullptr;
  int n_done_ = 0;
};

// Online softmax (Milakov and Gimelshein 2018, "Online normalizer calculation for softmax"), one
// chunk of positions at a time. Chunks begin at fixed positions. So a position's arithmetic does
// not depend on how the keys were written, nor on the other states.
template <FloatVector V, class Products, AttentionNumbers<V, Products> Numbers>
class Attention {
 public:
  Attention(const AttendArgs& args, int first_query, int n_queries)
      : args_(args),
        layout_{Products::kKind, args.head_dim},
        first_query_(first_query),
        split_chunk_(args.split * kChunksOfSplit),
        first_chunk_(split_chunk_),
        n_chunks_(0),
        states_(args, first_query, n_queries),
        numbers_(args, layout_),
        assembled_(layout_, args.scratch),
        values_of_keys_(layout_, args.scratch, args.values_in_keys) {
    for (int i = 0; i < states_.of_rows(args.n_rows); ++i) numbers_.query(i, states_[i].query);
    for (int r = 0; r < args.n_rows; ++r) {
      const int n = chunks_of(r);
      if (n > n_chunks_) n_chunks_ = n;
    }
    first_chunk_ = first_chunk_of(0);
    for (int r = 0; r < args.n_rows; ++r) {
      first_chunk_ = min_of(first_chunk_, first_chunk_of(r));
      has_window_ = has_window_ || args.rows[r].first_key > 0;
    }
  }

  void run() {
    const int end_shared = end_of_shared_chunks();
    int chunk = first_chunk_;
    for (; chunk < end_shared; ++chunk) {
      step(0, args_.n_rows, kChunkKeys, keys(chunk), values_in_place(chunk, kChunkKeys), chunk);
    }
    for (int r = 0; r < args_.n_rows; ++r) {
      const int first = first_chunk_of(r);
      for (int own = chunk < first ? first : chunk; own < end_chunk_of(r); ++own) own_step(r, own);
      states_.store_states(r, args_.rows[r].states + first_query_);
    }
  }

 private:
  static constexpr int kChunksOfSplit = kSplitKeys / kChunkKeys;

  static int min_of(int a, int b) { return a < b ? a : b; }

  int chunks_of(int r) const { return (args_.rows[r].n_keys + kChunkKeys - 1) / kChunkKeys; }
  // The first chunk of the split that row r reads; the split's end if it reads none.
  int first_chunk_of(int r) const {
    const int first = args_.rows[r].first_key / kChunkKeys;
    return first <= split_chunk_ ? split_chunk_ : min_of(first, split_chunk_ + kChunksOfSplit);
  }
  // The end of row r's chunks in the split (exclusive).
  int end_chunk_of(int r) const { return min_of(chunks_of(r), split_chunk_ + kChunksOfSplit); }
  // The end of the whole chunks whose positions are slots of the same number for every row.
  int end_of_shared_chunks() const {
    int n = args_.rows[0].n_contiguous;
    for (int r = 1; r < args_.n_rows; ++r) n = min_of(n, args_.rows[r].n_contiguous);
    return min_of(n / kChunkKeys, split_chunk_ + kChunksOfSplit);
  }
  const std::byte* keys(int chunk) const {
    return static_cast<const std::byte*>(args_.chunks[chunk]) + args_.keys_at;
  }
  const std::byte* values(int chunk) const {
    return static_cast<const std::byte*>(args_.chunks[chunk]) + args_.values_at;
  }
  bool has_values() const { return args_.values_in_keys == 0; }
  const std::byte* values_in_place(int chunk, int n) {
    return has_values() ? values(chunk) : values_of_keys_.transposed(keys(chunk), n, true);
  }

  void own_step(int r, int chunk) {
    const AttendRow& row = args_.rows[r];
    const int first = chunk * kChunkKeys;
    const int n = min_of(row.n_keys - first, kChunkKeys);
    if (first + n <= row.n_contiguous) {
      return step(r, 1, n, keys(chunk), values_in_place(chunk, n), chunk);
    }
    const int n_contiguous = row.n_contiguous > first ? row.n_contiguous - first : 0;
    assembled_.assemble(
        chunk, n_contiguous, n, row.slots + (first + n_contiguous - row.n_contiguous),
        [&](int from) { return keys(from); }, [&](int from) { return values(from); }, has_values());
    const std::byte* const own = has_values()
                                     ? assembled_.values()
                                     : values_of_keys_.transposed(assembled_.keys(), n, false);
    step(r, 1, n, assembled_.keys(), own, chunk);
  }

  // Processes a chunk of n positions for n_rows rows from `row` on.
  void step(int row, int n_rows, int n, const std::byte* keys_at, const std::byte* values_at,
            int chunk) {
    // After the last chunk of a split comes the next split's first: the same thread usually reads
    // that next.
    const int next = chunk + 1 < n_chunks_ ? chunk + 1 : chunk;
    const int index = states_.first_of(row);
    const int n_states = states_.of_rows(n_rows);
    // The first state prefetches the next chunk.
    numbers_.begin_keys(keys_at);
    const Cells key_cells{keys_at, kKeyRowBytes, keys(next)};
    for_query_states<Products::kRows>(index, n_states, [&]<int R>(int at) {
      at == index ? score<R, true>(key_cells, at, n) : score<R, false>(key_cells, at, n);
      if (args_.rows[0].bias != nullptr) add_bias(at, R, chunk, n);
      if (args_.softcap > 0) cap_scores(at, R, n);
      if (has_window_) {
        for (int r = at; r < at + R; ++r) mask_before_window(r, chunk, n);
      }
      constexpr int kTogether = R < V::kStatesWeighed ? R : V::kStatesWeighed;
      for (int r = at; r < at + R; r += kTogether) {
        weigh<V, typename Numbers::Weight, kTogether>(args_.value_dim(), n, &weights_[r],
                                                      &states_[r]);
      }
    });
    numbers_.begin_values(values_at, n);
    // Values that are keys are prefetched with these.
    const Cells value_cells{values_at, layout_.value_row_bytes(),
                            has_values() ? values(next) : values_at};
    for_query_states<Products::kRows>(index, n_states, [&]<int R>(int at) {
      at == index ? sum<R, true>(value_cells, at, n) : sum<R, false>(value_cells, at, n);
    });
  }

  // Once for each chunk and state, over scores that are stored in any case. Not inlined, so that
  // calls without a cap only pay for the test.
  [[gnu::noinline]] void cap_scores(int first_state, int n_states, int n) {
    const SoftCap<V> capped(args_.softcap);
    for (int index = first_state; index < first_state + n_states; ++index) {
      for (int i = 0; i < n; i += kLanes) {
        float* at = weights_[index] + i;
        capped.of(V::load(at)).store(at);
      }
    }
  }

  // Not inlined, for the same reason.
  [[gnu::noinline]] void add_bias(int first_state, int n_states, int chunk, int n) {
    for (int index = first_state; index < first_state + n_states; ++index) {
      const int row = states_.row_of(index);
      const int query = first_query_ + index - states_.first_of(row);
      const float* const bias = args_.rows[row].bias +
                                static_cast<std::size_t>(query) * args_.bias_stride +
                                chunk * kChunkKeys;
      for (int i = 0; i < n; i += kLanes) {
        float* at = weights_[index] + i;
        (V::load(at) + load_at<V>(bias, i, n)).store(at);
      }
    }
  }

  // Keys before a row's window get the score minus infinity, and so the weight 0.
  void mask_before_window(int index, int chunk, int n) {
    const int before = args_.rows[states_.row_of(index)].first_key - chunk * kChunkKeys;
    for (int i = 0; i < min_of(before, n); ++i) weights_[index][i] = -__builtin_inff();
  }

  template <int R, bool kCalls>
  void score(const Cells& cells, int index, int n) {
    for_dots<V, Products, kCalls, R, Products::vectors(R)>(
        cells, args_.head_dim, numbers_.queries(index), 0, (n + kLanes - 1) / kLanes,
        [&, scores = &weights_[index]](int r, int vector, const V& dots) {
          numbers_.score(index + r, vector, dots).store(scores[r] + vector * kLanes);
        });
  }

  template <int R, bool kCalls>
  void sum(const Cells& cells, int index, int n) {
    const auto rows = numbers_.template weights<R>(&weights_[index]);
    const int value_dim = args_.value_dim();
    float* outs[R];
    for (int r = 0; r < R; ++r) outs[r] = states_[index + r].out;
    for_dots<V, Products, kCalls, R, Products::vectors(R)>(
        cells, n, rows, 0, (value_dim + kLanes - 1) / kLanes,
        [&](int r, int vector, const V& dots) {
          const int d = vector * kLanes;
          const V so_far = load_at<V>(outs[r], d, value_dim);
          store_at(numbers_.sum(r, dots, so_far), outs[r], d, value_dim);
        });
  }

  const AttendArgs& args_;
  KvLayout layout_;
  int first_query_;
  int split_chunk_;          // the split's first
  int first_chunk_;          // the first that some row reads
  int n_chunks_;             // of the longest row, over all splits
  bool has_window_ = false;  // some row does not read all keys
  QueryStates states_;
  Numbers numbers_;
  AssembledChunk assembled_;
  ValuesOfKeys values_of_keys_;
  alignas(kLineBytes) float weights_[kMaxQueryStates][kChunkKeys];
};

template <FloatVector V, class Products, AttentionNumbers<V, Products> Numbers>
void attend_with(const AttendArgs& args) {
  for (int q = 0; q < args.n_queries; q += kMaxQueries) {
    Attention<V, Products, Numbers> attention(
        args, q, args.n_queries - q < kMaxQueries ? args.n_queries - q : kMaxQueries);
    attention.run();
  }
}

template <FloatVector V>
void merge_split(const float* further_sums, const AttendState& further, int head_dim, float* sums,
                 AttendState* state) {
  const float highest = state->highest < further.highest ? further.highest : state->highest;
  const Factor<V> before(state->highest - weighed_beside(highest));
  const Factor<V> behind(further.highest - weighed_beside(highest));
  for (int d = 0; d < head_dim; d += kLanes) {
    const V so_far = load_at<V>(sums, d, head_dim) * before.of_all;
    store_at(fma(load_at<V>(further_sums, d, head_dim), behind.of_all, so_far), sums, d, head_dim);
  }
  state->total = __builtin_fmaf(further.total, behind.of_one, state->total * before.of_one);
  state->highest = highest;
}

template <FloatVector V>
void finish_attention(const AttendState& state, int head_dim, float* sums) {
  const V inverse = V::broadcast(1.0F / state.total);
  for (int d = 0; d < head_dim; d += kLanes) {
    store_at(load_at<V>(sums, d, head_dim) * inverse, sums, d, head_dim);
  }
}

}  // namespace
}  // namespace outrider::kernels

#endif  // OUTRIDER_KERNELS_ATTENTION_ATTENTION_H_
