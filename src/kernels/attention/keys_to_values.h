// SPDX-License-Identifier: Apache-2.0
// Keys as values: a block of keys, transposed into a block of values (kv_layout.h), for keys whose
// first elements are their values (AttendArgs::values_in_keys).
//
// Internal linkage, as layout.h.
#ifndef OUTRIDER_KERNELS_ATTENTION_KEYS_TO_VALUES_H_
#define OUTRIDER_KERNELS_ATTENTION_KEYS_TO_VALUES_H_

#include <cstddef>
#include <cstdint>

#include "kernels/attention/kv_layout.h"

namespace outrider::kernels {
namespace {

// Four cells: vectors that every supported processor has, so that all tables share this code.
using FourCells = std::uint32_t __attribute__((vector_size(16)));
constexpr int kCellsTogether = 4;

inline FourCells load_cells(const std::byte* from) {
  FourCells cells;
  __builtin_memcpy(&cells, from, sizeof cells);
  return cells;
}

inline void transpose(FourCells (&rows)[kCellsTogether]) {
  const FourCells low_01 = __builtin_shufflevector(rows[0], rows[1], 0, 4, 1, 5);
  const FourCells low_23 = __builtin_shufflevector(rows[2], rows[3], 0, 4, 1, 5);
  const FourCells high_01 = __builtin_shufflevector(rows[0], rows[1], 2, 6, 3, 7);
  const FourCells high_23 = __builtin_shufflevector(rows[2], rows[3], 2, 6, 3, 7);
  rows[0] = __builtin_shufflevector(low_01, low_23, 0, 1, 4, 5);
  rows[1] = __builtin_shufflevector(low_01, low_23, 2, 3, 6, 7);
  rows[2] = __builtin_shufflevector(high_01, high_23, 0, 1, 4, 5);
  rows[3] = __builtin_shufflevector(high_01, high_23, 2, 3, 6, 7);
}

// Four dims of four cells of tokens each, in the order of the kind's cells. row(i): the address of
// the i-th of the dims' rows of keys, at the first token.
template <KvKind kKind, class Row>
void cells_of_dims(const Row& row, FourCells (&dims)[kCellsTogether]) {
  if constexpr (kKind == KvKind::f32) {
    for (int i = 0; i < kCellsTogether; ++i) dims[i] = load_cells(row(i));
  } else if constexpr (kKind == KvKind::bf16) {
    for (int i = 0; i < 2; ++i) {
      const FourCells first = load_cells(row(i));
      const FourCells second = load_cells(row(i) + sizeof(FourCells));
      const FourCells even = __builtin_shufflevector(first, second, 0, 2, 4, 6);
      const FourCells odd = __builtin_shufflevector(first, second, 1, 3, 5, 7);
      dims[2 * i] = (even & 0xffffU) | (odd << 16);
      dims[2 * i + 1] = (even >> 16) | (odd & 0xffff0000U);
    }
  } else {
    FourCells tokens[kCellsTogether];
    for (int i = 0; i < kCellsTogether; ++i) {
      tokens[i] = load_cells(row(0) + static_cast<std::size_t>(i) * sizeof(FourCells));
    }
    transpose(tokens);                       // now the i-th tokens of four cells
    constexpr int kBits[] = {0, 16, 8, 24};  // the order within a cell (kv_layout.h)
    for (int dim = 0; dim < kCellsTogether; ++dim) {
      dims[dim] = FourCells{};
      for (int i = 0; i < kCellsTogether; ++i) {
        dims[dim] |= ((tokens[i] >> kBits[dim]) & 0xffU) << kBits[i];
      }
    }
  }
}

template <KvKind kKind>
void transpose_keys(const KvLayout& layout, const std::byte* keys, std::byte* values, int n_dims,
                    int begin, int end) {
  const int n_of_cell = layout.cell();
  const int n_together = kCellsTogether * n_of_cell;  // tokens; divides a chunk's
  const int first_token = begin / n_together * n_together;
  for (int dim = 0; dim < n_dims; dim += kCellsTogether) {
    for (int token = first_token; token < end; token += n_together) {
      FourCells cells[kCellsTogether];
      // After the last row of keys it is repeated: the result pads values.
      const auto row = [&](int i) {
        const int at = dim / n_of_cell + i;
        const int last = layout.key_rows() - 1;
        return keys + static_cast<std::size_t>(at < last ? at : last) * kKeyRowBytes +
               static_cast<std::size_t>(token) * kCellBytes;
      };
      cells_of_dims<kKind>(row, cells);
      transpose(cells);
      for (int i = 0; i < kCellsTogether; ++i) {
        __builtin_memcpy(values + layout.value_at(token + i * n_of_cell, dim), &cells[i],
                         sizeof(FourCells));
      }
    }
  }
}

// Copies the first n_dims dims of the keys of tokens [begin, end), with their scales, into a block
// of values. Neighbouring tokens, and dims up to a multiple of four, become undefined.
inline void copy_keys_to_values(const KvLayout& layout, const std::byte* keys, std::byte* values,
                                int n_dims, int begin, int end) {
  switch (layout.kind) {
    case KvKind::f32:
      return transpose_keys<KvKind::f32>(layout, keys, values, n_dims, begin, end);
    case KvKind::bf16:
      return transpose_keys<KvKind::bf16>(layout, keys, values, n_dims, begin, end);
    case KvKind::int8:
      transpose_keys<KvKind::int8>(layout, keys, values, n_dims, begin, end);
      __builtin_memcpy(values + layout.scale_at(begin), keys + layout.scale_at(begin),
                       static_cast<std::size_t>(end - begin) * sizeof(float));
  }
}

}  // namespace
}  // namespace outrider::kernels

#endif  // OUTRIDER_KERNELS_ATTENTION_KEYS_TO_VALUES_H_
