// SPDX-License-Identifier: Apache-2.0
// The layout of keys and values in the KV cache, which is that of their products. One head's keys
// (or values) of kChunkKeys consecutive tokens are a block of cells of four bytes. A cell is what a
// lane of a product takes at a time: one f32, two bf16 or four int8.
//
//   keys     [cells of dims][64 tokens]    a cell is dims of one token
//   values   [cells of tokens][dims]       a cell is one dim of consecutive tokens; dims padded
//   int8     [64] float scales after either
//
// So sixteen keys of a chunk, or sixteen dims of its values, are one cache line for every cell, in
// sequence. No transposition, permutation or strided access is needed. A cell of four is in the
// order 0, 2, 1, 3: its even bytes are one pair of words when widened, its odd ones the next.
// Padding is never read, or has no effect.
//
// Internal linkage, as layout.h.
#ifndef OUTRIDER_KERNELS_ATTENTION_KV_LAYOUT_H_
#define OUTRIDER_KERNELS_ATTENTION_KV_LAYOUT_H_

#include <cstddef>

#include "kernels/table.h"

namespace outrider::kernels {
namespace {

constexpr std::size_t kCellBytes = 4;
constexpr std::size_t kKeyRowBytes = kChunkKeys * kCellBytes;

struct KvLayout {
  KvKind kind;
  int head_dim;

  constexpr std::size_t element_bytes() const {
    return kind == KvKind::f32 ? 4 : (kind == KvKind::bf16 ? 2 : 1);
  }
  // Elements of a cell: dims of keys, tokens of values.
  constexpr int cell() const { return static_cast<int>(kCellBytes / element_bytes()); }
  constexpr int key_rows() const { return (head_dim + cell() - 1) / cell(); }
  constexpr std::size_t value_row_bytes() const {
    return static_cast<std::size_t>((head_dim + kLanes - 1) / kLanes * kLanes) * kCellBytes;
  }
  constexpr int value_rows(int n_tokens) const { return (n_tokens + cell() - 1) / cell(); }
  // Offsets in bytes from the start of a block.
  constexpr std::size_t key_at(int token, int dim) const {
    return static_cast<std::size_t>(dim / cell()) * kKeyRowBytes +
           static_cast<std::size_t>(token) * kCellBytes + within_cell(dim);
  }
  constexpr std::size_t value_at(int token, int dim) const {
    return static_cast<std::size_t>(token / cell()) * value_row_bytes() +
           static_cast<std::size_t>(dim) * kCellBytes + within_cell(token);
  }
  constexpr std::size_t scale_at(int token) const {
    return scales_at() + static_cast<std::size_t>(token) * sizeof(float);
  }
  constexpr std::size_t scales_at() const {
    return static_cast<std::size_t>(value_rows(kChunkKeys)) * value_row_bytes();
  }
  // Bytes of a block of keys, or of values: whole cache lines.
  constexpr std::size_t block_bytes() const {
    return scales_at() + (kind == KvKind::int8 ? kChunkKeys * sizeof(float) : 0);
  }

  // Copies the first n tokens' keys, or values, from one block to another. Some of the tokens after
  // them are copied, too.
  void copy_first_keys(const std::byte* from, std::byte* to, int n) const {
    const std::size_t n_bytes = static_cast<std::size_t>(n) * kCellBytes;
    for (int row = 0; row < key_rows(); ++row) {
      const std::size_t at = static_cast<std::size_t>(row) * kKeyRowBytes;
      __builtin_memcpy(to + at, from + at, n_bytes);
    }
    copy_first_scales(from, to, n);
  }
  void copy_first_values(const std::byte* from, std::byte* to, int n) const {
    __builtin_memcpy(to, from, static_cast<std::size_t>(value_rows(n)) * value_row_bytes());
    copy_first_scales(from, to, n);
  }

  // The same without padding and without any later token.
  void copy_only_keys(const std::byte* from, std::byte* to, int n) const {
    const int n_whole = n_without_padding(n);
    copy_first_keys(from, to, n_whole);
    for (int token = n_whole; token < n; ++token) {
      for (int dim = 0; dim < head_dim; ++dim) {
        copy_element(from + key_at(token, dim), to + key_at(token, dim));
      }
      copy_scale(from, token, to, token);
    }
  }
  void copy_only_values(const std::byte* from, std::byte* to, int n) const {
    const int n_whole = n_without_padding(n);
    copy_first_values(from, to, n_whole);
    for (int token = n_whole; token < n; ++token) copy_value(from, token, to, token);
  }

  // Copies one token's keys, or values, from one block to another.
  void copy_key(const std::byte* from, int from_token, std::byte* to, int to_token) const {
    const std::byte* source = from + key_at(from_token, 0);
    std::byte* target = to + key_at(to_token, 0);
    for (int row = 0; row < key_rows(); ++row) {
      __builtin_memcpy(target, source, kCellBytes);
      source += kKeyRowBytes;
      target += kKeyRowBytes;
    }
    copy_scale(from, from_token, to, to_token);
  }
  void copy_value(const std::byte* from, int from_token, std::byte* to, int to_token) const {
    const std::byte* source = from + value_at(from_token, 0);
    std::byte* target = to + value_at(to_token, 0);
    for (int dim = 0; dim < head_dim; ++dim) {
      copy_element(source, target);
      source += kCellBytes;
      target += kCellBytes;
    }
    copy_scale(from, from_token, to, to_token);
  }

 private:
  // The tokens in whole cells, if dims fill whole vectors; else 0.
  constexpr int n_without_padding(int n) const {
    return head_dim % kLanes == 0 ? n / cell() * cell() : 0;
  }
  constexpr std::size_t within_cell(int i) const {
    const int place = i % cell();
    if (kind == KvKind::int8 && place % 3 != 0) return static_cast<std::size_t>(3 - place);
    return static_cast<std::size_t>(place) * element_bytes();
  }
  void copy_element(const std::byte* from, std::byte* to) const {
    switch (kind) {
      case KvKind::f32:
        __builtin_memcpy(to, from, 4);
        break;
      case KvKind::bf16:
        __builtin_memcpy(to, from, 2);
        break;
      case KvKind::int8:
        *to = *from;
        break;
    }
  }
  void copy_first_scales(const std::byte* from, std::byte* to, int n) const {
    if (kind != KvKind::int8) return;
    __builtin_memcpy(to + scales_at(), from + scales_at(),
                     static_cast<std::size_t>(n) * sizeof(float));
  }
  void copy_scale(const std::byte* from, int from_token, std::byte* to, int to_token) const {
    if (kind != KvKind::int8) return;
    __builtin_memcpy(to + scale_at(to_token), from + scale_at(from_token), sizeof(float));
  }
};

}  // namespace
}  // namespace outrider::kernels

#endif  // OUTRIDER_KERNELS_ATTENTION_KV_LAYOUT_H_
