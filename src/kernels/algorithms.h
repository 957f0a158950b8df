// SPDX-License-Identifier: Apache-2.0
// Every kernel, written once over a vector type V of 16 floats and types Dots and Words of integer
// dot products. Each instruction set's file defines these and calls make_table<V, Dots,
// Words>(name).
//
// V offers:
// - zero, broadcast(float), load(const float*), load_f16(const uint16_t*), store(float*);
//   load_first and store_first of n < 16 elements (zeros after the loaded ones)
// - store_int8(int8_t*) of integers in -128..127; store_int16(int16_t*) of numbers in the 16-bit
//   range, rounded to nearest even
// - load_bytes and load_signed_bytes(const std::byte*) of sixteen bytes
// - Integers, sums of exact floats: zero(), add_exact(V) and rounded(), as a V
// - where there are bf16 products, store_bf16(uint16_t*) of values that bf16 can represent
// - + - * /; fma(a, b, c) = a * b + c rounded once
// - max(a, b) = a > b ? a : b and min(a, b) = a < b ? a : b (so a NaN in b passes, as in the x86
//   instructions)
// - absolute; shift_left_23 of the bits; reduce_add by the tree of table.h, and reduce_max
// - load_mixed, of weights, float or bf16, in the fastest order of lanes, and in_order<Element>,
//   which restores the order of results computed from it
// - load_even and load_odd, the first and the second of sixteen pairs of bf16
// - multiply_low_halves of kDoubles 64-bit integers
// and how many values the registers hold:
// - kMaxRows: rows of a product with one tile
// - kAccumulators: sums of a product with several tiles
// - kOneRowTiles: tiles that one row takes together
// - kSumsBesideInputs: up to how many sums inputs stay in registers from tile to tile; above that
//   they are read with broadcast_anew
// - kAttentionSums, a power of two: sums of products with keys or values
// - kStatesWeighed, a power of two: queries whose scores become weights together
// - kDoubles: doubles processed together
//
// Dots offers:
// - kMaxRows, the most rows at a time
// - dots<Codes, kParts, R, T>(weights, inputs, use), for R <= kMaxRows rows and T tiles: the exact
//   dot products of one group's 16 outputs with each row's 32 quantised inputs, or with each half
//   of these, as floats (below 2^24, so exact); use(t, dots) gets those of tile t and all kParts
//   parts and R rows
// - measured: kFixedWayRows, the most rows for which weights are prefetched at a fixed distance
//   (above it: PrefetchStreams), and kOneRowAhead, that distance in bytes for one row
// TileByTile computes them one tile at a time: dots<Codes, kParts, R>(weights, inputs, dots).
//
// Products of attention, for keys and values of some kKind, offer dots<R, T>(cells, row_bytes, n,
// rows, ahead, use). It calls use(r, t, dots) with the dot products of R rows of n numbers
// (rows.at(r) is the address of the first) with T vectors of 16 columns of cells. The vectors are
// adjacent in rows row_bytes apart (kv_layout.h); ahead.row<T> is called for every row of cells. R
// is at most kRows, and that many rows may be read; T is at most vectors(R). Both are powers of
// two. Cells beyond n have no effect. Words, an argument of make_table, is the type for int8 with
// 16-bit words: exact, rounded once. Products of int8 declare what their rows consist of: Number;
// kTogether of them, zeros at the end; kDigits for each word, 1 if they are the words themselves,
// else the digits from to_digits(words, n, row) of n words.
//
// Numbers of attention say how queries and weights become rows of such numbers:
//
//   Weight                     what weigh() takes: the last step of a weight
//   query(index, x)            sets a state's query, x (head_dim)
//   queries(index)             the queries from that state on
//   begin_keys(block)          starts the keys of one chunk
//   score(index, vector, dots) the state's scores of 16 of its keys
//   begin_values(block, n)     starts the values of n tokens
//   weights<R>(from)           R states' weights of a chunk, (R, kChunkKeys)
//   sum(r, dots, so_far)       so_far plus the r-th of those states' sums of the chunk's values
//
// The algorithms are in products.h, rows.h, delta_rule.h, attention.h, float_attention.h,
// int8_attention.h, bf16_attention.h, double_functions.h and philox.h; here they become a table.
// Everything in them has internal linkage, and they use no function of the standard library that
// could be emitted out of line: a copy compiled with AVX flags must never be linked into code that
// runs everywhere.
#ifndef OUTRIDER_KERNELS_ALGORITHMS_H_
#define OUTRIDER_KERNELS_ALGORITHMS_H_

#include "kernels/attention/float_attention.h"
#include "kernels/attention/int8_attention.h"
#include "kernels/delta_rule.h"
#include "kernels/double_functions.h"
#include "kernels/formats/block_formats.h"
#include "kernels/philox.h"
#include "kernels/products.h"
#include "kernels/rows.h"
#include "kernels/table.h"
#include "kernels/tables.h"

namespace outrider::kernels {
namespace {

template <WeightKind kKind>
constexpr void set_format(KernelTable& table, ActivationForm reads,
                          void (*matmul)(const MatmulArgs& args)) {
  table.formats[static_cast<int>(kKind)] = {reads, tile_bytes<kKind>, pack_tile<kKind>, matmul};
}

template <class Format>
constexpr ActivationForm form_read_by() {
  if constexpr (is_of_whole_blocks(Format::kKind)) {
    return Format::Scales::kParts == 2 ? ActivationForm::block_halves : ActivationForm::blocks;
  }
  return ActivationForm::int8;
}

template <class V, class Dots, class... Formats>
constexpr void set_block_formats(KernelTable& table, FormatList<Formats...>) {
  (set_format<Formats::kKind>(table, form_read_by<Formats>(), matmul_quantized<V, Dots, Formats>),
   ...);
}

template <class V, class Dots, class Words>
constexpr KernelTable make_table(const char* name) {
  KernelTable table{
      .name = name,
      .formats = {},
      .quantize_row = quantize_row<V>,
      .quantize_blocks = quantize_blocks<V>,
      .round_row = nullptr,
      .rms_norm = rms_norm<V>,
      .layer_norm = layer_norm<V>,
      .apply_rope = apply_rope<V>,
      .silu_multiply = silu_multiply<V>,
      .clamped_swish_multiply = clamped_swish_multiply<V>,
      .softmax_weights = softmax_weights<V::kDoubles>,
      .logarithms = logarithms<V::kDoubles>,
      .philox_uniforms = philox_uniforms<V>,
      .gelu_multiply = gelu_multiply<V>,
      .gelu_erf_multiply = gelu_erf_multiply<V>,
      .soft_cap = soft_cap<V>,
      .sigmoid_multiply = sigmoid_multiply<V>,
      .delta_step = delta_step<V>,
      .mamba_step = mamba_step<V>,
      .add = add_to<V>,
      .store_key = {store_key<V, KvKind::f32>, store_key<V, KvKind::bf16>,
                    store_key<V, KvKind::int8>},
      .store_value = {store_value<V, KvKind::f32>, store_value<V, KvKind::bf16>,
                      store_value<V, KvKind::int8>},
      .attend = {attend_with<V, FloatProducts<V, KvKind::f32>, FloatNumbers<V>>,
                 attend_with<V, FloatProducts<V, KvKind::bf16>, FloatNumbers<V>>,
                 attend_with<V, Words, Int8Numbers<V, Words>>},
      .attend_bf16_pairs = nullptr,
      .merge_split = merge_split<V>,
      .finish_attention = finish_attention<V>,
  };
  set_format<WeightKind::f32>(table, ActivationForm::f32, matmul_plain<V, float>);
  set_format<WeightKind::bf16>(table, ActivationForm::f32, matmul_plain<V, std::uint16_t>);
  set_block_formats<V, Dots>(table, FormatList<Int8, Int4>{});
  set_block_formats<V, FourRows<Dots>>(table, StoredFormats{});
  return table;
}

}  // namespace
}  // namespace outrider::kernels

#endif  // OUTRIDER_KERNELS_ALGORITHMS_H_
