// SPDX-License-Identifier: Apache-2.0
// All kernels by their names in the compiled image: ENTRY(name, Kernel, Step::variant, threads of a
// block, body). A variant of kAnyVariant is every one.
#ifndef OUTRIDER_DEVICE_CUDA_KERNELS_ENTRIES_CUH_
#define OUTRIDER_DEVICE_CUDA_KERNELS_ENTRIES_CUH_

#include "device/cuda/kernels/attend.cuh"
#include "device/cuda/kernels/cache.cuh"
#include "device/cuda/kernels/product.cuh"
#include "device/cuda/kernels/rows.cuh"

// clang-format off
#define OUTRIDER_CUDA_ENTRIES(ENTRY)                                                             \
  ENTRY(arithmetic, arithmetic, kAnyVariant, kRowThreads, answer_all)                            \
  ENTRY(quantize_rows, quantize_rows, kAnyVariant, kRowThreads, quantize_rows)                   \
  ENTRY(product_int8_1, product_int8, 1, kProductThreads, (multiply<Int8Weights, 1>))            \
  ENTRY(product_int8_2, product_int8, 2, kProductThreads, (multiply<Int8Weights, 2>))            \
  ENTRY(product_int8_4, product_int8, 4, kProductThreads, (multiply<Int8Weights, 4>))            \
  ENTRY(product_int8_8, product_int8, 8, kProductThreads, (multiply<Int8Weights, 8>))            \
  ENTRY(product_int4_1, product_int4, 1, kProductThreads, (multiply<Int4Weights, 1>))            \
  ENTRY(product_int4_2, product_int4, 2, kProductThreads, (multiply<Int4Weights, 2>))            \
  ENTRY(product_int4_4, product_int4, 4, kProductThreads, (multiply<Int4Weights, 4>))            \
  ENTRY(product_int4_8, product_int4, 8, kProductThreads, (multiply<Int4Weights, 8>))            \
  ENTRY(rms_norm, rms_norm, kAnyVariant, kRowThreads, rms_norm_rows)                             \
  ENTRY(norm_in_place, norm_in_place, kAnyVariant, kRowThreads, normalise_pieces)                \
  ENTRY(layer_norm, layer_norm, kAnyVariant, kRowThreads, layer_norm_rows)                       \
  ENTRY(apply_rope, apply_rope, kAnyVariant, kRowThreads, apply_rope_to_heads)                   \
  ENTRY(gate_silu, gate, 0, kRowThreads, gate_rows<GateActivation::silu>)                        \
  ENTRY(gate_gelu_tanh, gate, 1, kRowThreads, gate_rows<GateActivation::gelu_tanh>)              \
  ENTRY(gate_gelu_erf, gate, 2, kRowThreads, gate_rows<GateActivation::gelu_erf>)                \
  ENTRY(activate_silu, activate, 0, kRowThreads, activate_rows<GateActivation::silu>)            \
  ENTRY(activate_gelu_tanh, activate, 1, kRowThreads, activate_rows<GateActivation::gelu_tanh>)  \
  ENTRY(activate_gelu_erf, activate, 2, kRowThreads, activate_rows<GateActivation::gelu_erf>)    \
  ENTRY(cap_rows, cap_rows, kAnyVariant, kRowThreads, soft_cap_rows)                             \
  ENTRY(add_rows, add_rows, kAnyVariant, kRowThreads, add_to_rows)                               \
  ENTRY(add_bias, add_bias, kAnyVariant, kRowThreads, add_bias_to_columns)                       \
  ENTRY(scale_rows, scale_rows, kAnyVariant, kRowThreads, scale_columns)                         \
  ENTRY(copy_rows, copy_rows, kAnyVariant, kRowThreads, copy_columns)                            \
  ENTRY(best_of_numbers, best_of_rows, 0, kRowThreads, find_best<false>)                         \
  ENTRY(best_of_parts, best_of_rows, 1, kRowThreads, find_best<true>)                            \
  ENTRY(store_f32, store_rows, 0, kRowThreads, store_tokens<KvKind::f32>)                        \
  ENTRY(store_bf16, store_rows, 1, kRowThreads, store_tokens<KvKind::bf16>)                      \
  ENTRY(store_int8, store_rows, 2, kRowThreads, store_tokens<KvKind::int8>)                      \
  ENTRY(move_f32, move_slots, 0, kRowThreads, move_tokens<KvKind::f32>)                          \
  ENTRY(move_bf16, move_slots, 1, kRowThreads, move_tokens<KvKind::bf16>)                        \
  ENTRY(move_int8, move_slots, 2, kRowThreads, move_tokens<KvKind::int8>)                        \
  ENTRY(attend_f32, attend_f32, 0, kRowThreads, (attend_split<KvKind::f32, false>))              \
  ENTRY(attend_f32_capped, attend_f32, 1, kRowThreads, (attend_split<KvKind::f32, true>))        \
  ENTRY(attend_bf16, attend_bf16, 0, kRowThreads, (attend_split<KvKind::bf16, false>))           \
  ENTRY(attend_bf16_capped, attend_bf16, 1, kRowThreads, (attend_split<KvKind::bf16, true>))     \
  ENTRY(attend_int8, attend_int8, 0, kRowThreads, (attend_split<KvKind::int8, false>))           \
  ENTRY(attend_int8_capped, attend_int8, 1, kRowThreads, (attend_split<KvKind::int8, true>))     \
  ENTRY(merge_splits, merge_splits, kAnyVariant, kRowThreads, merge_all_splits)
// clang-format on

#endif  // OUTRIDER_DEVICE_CUDA_KERNELS_ENTRIES_CUH_
