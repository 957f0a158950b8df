// Every kernel, once, over a vector type V of 16 floats and types Dots and Words of integer dot
// products. Each instruction set's file defines these and calls make_table<V, Dots, Words>(name).
//
// V offers: zero, broadcast(float), load(const float*), load_first and store_first of n < 16
// elements (zeros behind what is loaded), load_f16(const uint16_t*), store(float*),
// store_int8(int8_t*) of integers in -128..127, store_int16(int16_t*) of numbers in that range of
// 16 bits, rounded to nearest even; load_bytes and load_signed_bytes(const std::byte*) of sixteen
// bytes; Integers, sums of exact floats: zero(), add_exact(V) and rounded(), as a V; where there
// are products of bf16, store_bf16(uint16_t*) of what bf16 holds; + - * /; fma(a, b, c) = a * b + c
// rounded once; max(a, b) = a > b ? a : b and min(a, b) = a < b ? a : b (so a NaN in b passes, as
// in the x86 instructions); absolute; shift_left_23 of the bits; reduce_add by the tree of table.h,
// and reduce_max; load_mixed, of weights, float or bf16, in whatever order of lanes is quickest,
// and in_order<Element>, which puts right what was computed from it; load_even and load_odd, of
// sixteen pairs of bf16 the first and the second ones. And how much of it the registers hold:
// kMaxRows, rows of a product with one tile; kAccumulators, sums of a product with several tiles;
// kOneRowTiles, tiles that one row takes together; kSumsBesideInputs, up to how many sums inputs
// stay in registers from tile to tile, while above that they are read with broadcast_anew;
// kAttentionSums, a power of two, sums of products with keys or values; kWalksWeighed, a power of
// two, walks over keys whose scores become weights together; kDoubles, how many doubles go
// together; multiply_low_halves of so many 64-bit integers.
//
// Dots offers: kMaxRows and, for R rows and T tiles at a time, at most kMaxRows of them together,
// the exact dot products of one group's 16 outputs with each row's 32 quantised inputs, or with
// each half of these, as floats (below 2^24, so exact): dots<Codes, kParts, R, T>(weights, inputs,
// use), use(t, dots) with those of tile t and all kParts parts and R rows; and, measured,
// kFixedWayRows, up to how many rows weights are called for a fixed way ahead (beyond: CallAhead),
// and kOneRowAhead, that way in bytes for one row. TileByTile makes them of one tile's: dots<Codes,
// kParts, R>(weights, inputs, dots).
//
// Products of attention, of some kKind of keys and values, offer dots<R, T>(cells, row_bytes, n,
// rows, ahead, use): use(r, t, dots) of R rows of n numbers (rows.at(r), the first one's address)
// with T vectors of 16 columns of cells, side by side in rows row_bytes apart (kv_layout.h),
// calling ahead.row<T> for every row of cells. R is at most kRows, and so many rows may be read; T
// at most vectors(R). Both are powers of two. What stands in cells beyond n has no effect. Words,
// which make_table takes, are those of int8 with words of 16 bits: exact, rounded once. Products of
// int8 say what their rows consist of: Number; kTogether of them, zeros at the end; kDigits of them
// to a word, 1 where they are the words themselves, else those that to_digits(words, n, row) makes
// of n.
//
// Numbers of attention say how queries and weights become rows of such numbers:
//
//   Weight                     what weigh() takes: the last step of a weight
//   query(walk, x)             a walk's query, x (head_dim); queries(walk): those from there on
//   begin_keys(block)          of one chunk
//   score(walk, vector, dots)  the walk's scores of 16 of its keys
//   begin_values(block, n)     of n tokens
//   weights<R>(from)           R walks' weights of a chunk, (R, kChunkKeys)
//   sum(r, dots, so_far)       so_far and the r-th of those walks' sums of the chunk's values
//
// The algorithms stand in products.h, rows.h, delta_rule.h, attention.h, float_attention.h,
// int8_attention.h, bf16_attention.h, double_functions.h and philox.h; here they become a table.
// Everything in them has internal linkage, and no function of the standard library is used that
// could be emitted out of line: a copy compiled with AVX flags must never be linked into code that
// runs everywhere.
#ifndef OUTRIDER_KERNELS_ALGORITHMS_H_
#define OUTRIDER_KERNELS_ALGORITHMS_H_

#include "kernels/delta_rule.h"
#include "kernels/double_functions.h"
#include "kernels/float_attention.h"
#include "kernels/formats/block_formats.h"
#include "kernels/int8_attention.h"
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
      .rotate = rotate<V>,
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
