// Every kernel, once, over a vector type V of 16 floats and types Dots and Words of integer dot
// products. Each instruction set's file defines these and calls make_table<V, Dots, Words>(name).
//
// V offers: zero, broadcast(float), load(const float*), load(const uint16_t* bf16),
// load_first and store_first of n < 16 elements (zeros behind what is loaded),
// load_f16(const uint16_t*), store(float*), store_int8(int8_t*) of integers in -128..127,
// store_int16(int16_t*) of numbers in that range of 16 bits, rounded to nearest even; where there
// are products of bf16, store_bf16(uint16_t*) of what bf16 holds; + - * /; fma(a, b, c) = a * b + c
// rounded once; max(a, b) = a > b ? a : b and min(a, b) = a < b ? a : b (so a NaN in b passes, as
// in the x86 instructions); absolute; shift_left_23 of the bits; reduce_add by the tree of table.h,
// reduce_add_each (of sixteen V at once: lane i is the i-th's sum) and reduce_max; load_mixed, of
// weights in whatever order of lanes is quickest, and in_order<Element>, which puts right what was
// computed from it. And how much of it the registers hold: kMaxRows, rows of a product with one
// tile; kAccumulators, sums of a product with several adjacent tiles; kOneRowTiles, tiles that one
// row takes together; kSumsBesideInputs, up to how many sums inputs stay in registers from tile to
// tile, while above that they are read with broadcast_anew; kDotSums, a divisor of 16, sums of dot
// products with keys, and kDotQueries, 1, 2 or 4 and no more than these, queries that meet each
// key; kValueSums, sums over values, and kValueQueries, of how many queries; kWidensInPlace,
// whether there is room for bf16 to be widened where it is used; kColumnDims and lay_columns, so
// many dims of sixteen rows of bf16 -> floats (kColumnDims, 16), dims a stride apart, 0 where there
// is no such thing; kWalksWeighed, a power of two, walks over keys whose scores become weights
// together; kDoubles, how many doubles go together; multiply_low_halves of so many 64-bit
// integers.
//
// Dots offers: kMaxRows and, for R rows at a time, the exact dot products of one group's 16 outputs
// with each row's 32 quantised inputs, as floats (below 2^24, so exact): int8 and int4.
//
// Words offers dot products of words of 16 bits, two of which make a pair: Stored and Word, what
// keys and values are in the cache and in products; lay_keys, kKeyDims of sixteen keys each ->
// (kKeyDims / 2, 16, 2) words, pairs a stride apart; lay_values, kValueDims dims of two values ->
// (kValueDims, 2) words; and dots, of R rows of words, a stride apart, with T <= kVectors vectors
// of 16 columns (pairs, T, 16, 2), as floats, for a multiple of kPairsTogether pairs. R is at most
// kRows, and so many rows may be read. kRows and kVectors are powers of two. Those that make_table
// takes are of int8 and exact, rounded once.
//
// The algorithms stand in products.h, rows.h, float_attention.h, laid_attention.h,
// int8_attention.h, bf16_attention.h, double_functions.h and philox.h; here they become a table.
// Everything in them has internal linkage, and no function of the standard library is used that
// could be emitted out of line: a copy compiled with AVX flags must never be linked into code that
// runs everywhere.
#ifndef OUTRIDER_KERNELS_ALGORITHMS_H_
#define OUTRIDER_KERNELS_ALGORITHMS_H_

#include "kernels/double_functions.h"
#include "kernels/float_attention.h"
#include "kernels/int8_attention.h"
#include "kernels/philox.h"
#include "kernels/products.h"
#include "kernels/rows.h"
#include "kernels/table.h"
#include "kernels/tables.h"

namespace outrider::kernels {
namespace {

template <class V, class Dots, class Words>
constexpr KernelTable make_table(const char* name) {
  return KernelTable{
      .name = name,
      .tile_bytes = {tile_bytes_f32, tile_bytes_bf16, tile_bytes_int8, tile_bytes_int4},
      .pack_tile = {pack_tile_f32, pack_tile_bf16, pack_tile_int8, pack_tile_int4},
      .matmul = {matmul_plain<V, float>, matmul_plain<V, std::uint16_t>,
                 matmul_quantized<V, Dots, WeightKind::int8>,
                 matmul_quantized<V, Dots, WeightKind::int4>},
      .quantize_row = quantize_row<V>,
      .round_row = nullptr,
      .rms_norm = rms_norm<V>,
      .rotate = rotate<V>,
      .silu_multiply = silu_multiply<V>,
      .softmax_weights = softmax_weights<V::kDoubles>,
      .logarithms = logarithms<V::kDoubles>,
      .philox_uniforms = philox_uniforms<V>,
      .add = add_to<V>,
      .to_bf16 = round_to_bf16<V>,
      .to_int8 = round_to_int8<V>,
      .attend = {attend_with<FloatSteps<V, float>>, attend_with<FloatSteps<V, std::uint16_t>>,
                 attend_with<Int8Steps<V, Words>>},
      .attend_bf16_pairs = nullptr,
  };
}

}  // namespace
}  // namespace outrider::kernels

#endif  // OUTRIDER_KERNELS_ALGORITHMS_H_
