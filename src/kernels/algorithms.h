// SPDX-License-Identifier: Apache-2.0
// Every kernel, written once over what an instruction set's file defines, and made into a table:
// make_table<V, Dots, Words>(name).
//
//   V       a vector of sixteen floats               FloatVector, vectors/float_vector.h
//   Dots    integer dot products of groups           GroupDots, group_dots.h
//   Words   int8 keys and values times 16-bit words  WordDots, attention/int8_attention.h
//
// These concepts say what each must offer, member by member. A file whose types lack one does not
// compile, and the error names it. TileByTile (group_dots.h) makes Dots of products with one tile
// (OneTileDots). Attention over bf16 by bf16 products is no part of make_table: attend_with in the
// files that have them (AttentionDots, attention/products_and_numbers.h; Bf16Vector).
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
#include "kernels/group_dots.h"
#include "kernels/philox.h"
#include "kernels/products.h"
#include "kernels/rows.h"
#include "kernels/table.h"
#include "kernels/tables.h"
#include "kernels/vectors/float_vector.h"

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

template <FloatVector V, GroupDots<V> Dots, class... Formats>
constexpr void set_block_formats(KernelTable& table, FormatList<Formats...>) {
  (set_format<Formats::kKind>(table, form_read_by<Formats>(), matmul_quantized<V, Dots, Formats>),
   ...);
}

template <FloatVector V, GroupDots<V> Dots, WordDots<V> Words>
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
