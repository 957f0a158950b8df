// SPDX-License-Identifier: Apache-2.0
// What attention.h requires of the dot products of queries with keys and of weights with values,
// and of the numbers that these multiply, member by member.
//
// Internal linkage, as everything compiled with instruction-set flags.
#ifndef OUTRIDER_KERNELS_ATTENTION_PRODUCTS_AND_NUMBERS_H_
#define OUTRIDER_KERNELS_ATTENTION_PRODUCTS_AND_NUMBERS_H_

#include <concepts>
#include <cstddef>
#include <cstdint>

#include "kernels/attention/kv_layout.h"
#include "kernels/layout.h"
#include "kernels/table.h"
#include "kernels/vectors/float_vector.h"

namespace outrider::kernels {
namespace {

// What products read their numbers from.
template <class Rows>
concept NumberRows = requires(const Rows& rows, int r) {
  rows.at(r)[0];  // the first number of row r
};

// Rows of one array, a stride apart.
template <class Number>
struct StridedRows {
  const Number* first;
  int stride;
  [[gnu::always_inline]] const Number* at(int r) const { return first + r * stride; }
};

// Prefetches one row of cells per call into the L2 cache. Does nothing where a block is read again.
// In the last chunk, which has no successor, it prefetches its own block.
template <bool kCalls>
struct CellsAhead {
  const std::byte* at;
  template <int T>
  [[gnu::always_inline]] void row(std::size_t offset) const {
    if constexpr (kCalls) {
      for (int t = 0; t < T; ++t) __builtin_prefetch(at + offset + t * kLineBytes, 0, 2);
    }
  }
};

// What dot products are given to: those of row r with the t-th vector of columns.
template <class V>
struct UseOfColumns {
  void operator()(int r, int t, const V& dots) const;
};

// Products of R rows of n numbers with T adjacent vectors of 16 columns of cells:
//
//   dots<R, T>(cells, row_bytes, n, rows, ahead, use)
//
// Rows of cells are row_bytes apart (kv_layout.h). ahead.row<T>(offset) is called for every one.
// Cells beyond n have no effect. R and T are powers of two.
template <class Products, class V, class Rows>
concept AttentionDots = NumberRows<Rows> &&
    requires(const std::byte* cells, std::size_t row_bytes, int n, const Rows& rows,
             const CellsAhead<true>& ahead, const UseOfColumns<V>& use) {
  { Products::kKind } -> std::convertible_to<KvKind>;  // of keys and values
  requires PowerOfTwo<Products::kRows>;  // R is at most that; so many rows may be read
  requires PowerOfTwo<Products::vectors(Products::kRows)>;  // T for R rows is at most vectors(R)
  Products::template dots<Products::kRows, Products::vectors(Products::kRows)>(cells, row_bytes, n,
                                                                               rows, ahead, use);
};

// e^x for x <= 0, at the precision that weights need.
template <class Weight, class V>
concept AttentionWeight = requires(const V x) {
  { Weight::of(x) } -> std::same_as<V>;
};

// Rows that these products take.
template <class Rows, class Products, class V>
concept RowsOf = AttentionDots<Products, V, Rows>;

// How queries and weights become rows of numbers for some products, and dot products become scores
// and sums. A state is one query head of one row of the call (attention.h).
template <class Numbers, class V, class Products>
concept AttentionNumbers = AttentionWeight<typename Numbers::Weight, V> &&
    requires(const AttendArgs& args, const KvLayout& layout, Numbers numbers, int state,
             const float* query, const std::byte* block, int vector, int n,
             const float (*weights)[kChunkKeys], int r, const V dots, const V so_far) {
  Numbers(args, layout);
  numbers.query(state, query);                                      // sets a state's, (head_dim)
  { numbers.queries(state) } -> RowsOf<Products, V>;                // from that state on
  numbers.begin_keys(block);                                        // of one chunk
  { numbers.score(state, vector, dots) } -> std::same_as<V>;        // of 16 of its keys
  numbers.begin_values(block, n);                                   // of n tokens, one chunk's
  { numbers.template weights<1>(weights) } -> RowsOf<Products, V>;  // of R states, (R, kChunkKeys)
  { numbers.sum(r, dots, so_far) } -> std::same_as<V>;  // so_far + the r-th of these states' dots
};

}  // namespace
}  // namespace outrider::kernels

#endif  // OUTRIDER_KERNELS_ATTENTION_PRODUCTS_AND_NUMBERS_H_
