// SPDX-License-Identifier: Apache-2.0
#include "device/host/host_kernels.h"

#include <bit>
#include <cmath>
#include <cstdint>

#include "base/float16.h"
#include "device/host/host_attention.h"
#include "device/host/host_cache.h"
#include "device/host/host_rows.h"
#include "device/kernel_steps.h"
#include "kernels/tables.h"
#include "kernels/vectors/vector_math.h"
#include "kernels/vectors/vector_scalar.h"

namespace outrider::device {
namespace {

using kernels::kScalarTable;
using Ranges = std::span<std::byte* const>;

template <class Element>
Element* as(std::byte* range) {
  return reinterpret_cast<Element*>(range);
}

void run_quantize_rows(const Step& step, Ranges ranges) {
  const auto numbers = step.numbers_as<QuantizeNumbers>();
  const int n_rows = rows_of(ranges[0], numbers.max_rows);
  for (int row = 0; row < n_rows; ++row) {
    kScalarTable.quantize_row(as<float>(ranges[1]) + static_cast<std::size_t>(row) * numbers.k,
                              static_cast<int>(numbers.k),
                              {.values = as<std::int8_t>(ranges[2]) + row * kernels::kGroup,
                               .scales = as<float>(ranges[3]) + row,
                               .sums = as<std::int32_t>(ranges[4]) + row,
                               .scaled_sums = as<float>(ranges[5]) + row,
                               .slots = static_cast<int>(numbers.slots)});
  }
}

void run_product(const Step& step, Ranges ranges, kernels::WeightKind kind) {
  const auto numbers = step.numbers_as<ProductNumbers>();
  const int n_rows = rows_of(ranges[0], numbers.max_rows);
  if (n_rows == 0) return;
  const bool has_minimums = kind == kernels::WeightKind::int4;
  kernels::MatmulArgs args{};
  args.tiles = ranges[1];
  args.n_columns = static_cast<int>(numbers.n_columns);
  args.n_tiles = (args.n_columns + kernels::kTileColumns - 1) / kernels::kTileColumns;
  args.k = static_cast<int>(numbers.k);
  args.n_rows = n_rows;
  args.slots = static_cast<int>(numbers.slots);
  args.quantized = as<std::int8_t>(ranges[2]);
  args.quantized_scales = as<float>(ranges[3]);
  if (has_minimums) args.scaled_sums = as<float>(ranges[4]);
  args.y = as<float>(ranges[has_minimums ? 5 : 4]) + numbers.y_first;
  args.y_stride = numbers.y_stride;
  kScalarTable.format(kind).matmul(args);
}

void run_rms_norm(const Step& step, Ranges ranges) {
  const auto numbers = step.numbers_as<NormNumbers>();
  const int n_rows = rows_of(ranges[0], numbers.max_rows);
  for (int row = 0; row < n_rows; ++row) {
    const std::size_t at = static_cast<std::size_t>(row) * numbers.n;
    kScalarTable.rms_norm(as<float>(ranges[1]) + at, as<float>(ranges[2]),
                          static_cast<int>(numbers.n), numbers.epsilon, as<float>(ranges[3]) + at);
  }
}

void run_layer_norm(const Step& step, Ranges ranges) {
  const auto numbers = step.numbers_as<LayerNormNumbers>();
  const int n_rows = rows_of(ranges[0], numbers.max_rows);
  const float* const bias = numbers.has_bias != 0 ? as<float>(ranges[4]) : nullptr;
  for (int row = 0; row < n_rows; ++row) {
    const auto index = static_cast<std::size_t>(row);
    const std::size_t from = numbers.picks != 0 ? as<std::uint32_t>(ranges[1])[index] : index;
    kScalarTable.layer_norm(as<float>(ranges[2]) + from * numbers.n, as<float>(ranges[3]), bias,
                            static_cast<int>(numbers.n), numbers.epsilon,
                            as<float>(ranges[5]) + index * numbers.n);
  }
}

void run_apply_rope(const Step& step, Ranges ranges) {
  const auto numbers = step.numbers_as<ApplyRopeNumbers>();
  const int n_rows = rows_of(ranges[0], numbers.max_rows);
  for (int row = 0; row < n_rows; ++row) {
    const std::size_t angles = static_cast<std::size_t>(row) * numbers.half;
    for (std::uint32_t head = 0; head < numbers.n_heads; ++head) {
      const std::size_t of_head = static_cast<std::size_t>(row) * numbers.n_heads + head;
      kScalarTable.apply_rope(as<float>(ranges[1]) + of_head * numbers.head_dim,
                              as<float>(ranges[2]) + angles, as<float>(ranges[3]) + angles,
                              static_cast<int>(numbers.half));
    }
  }
}

using kernels::Vector;

float answer(Function function, float a, float b, float c) {
  const auto low_bits = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(a) & 0xffffU);
  switch (function) {
    case Function::fused:
    case Function::fused_by_integers:
    case Function::native_fused:
      return __builtin_fmaf(a, b, c);
    case Function::divide:
    case Function::divide_by_integers:
    case Function::native_divide:
      return a / b;
    case Function::root:
    case Function::root_by_integers:
    case Function::native_root:
      return std::sqrt(a);
    case Function::exponential:
      return kernels::exponential(Vector::broadcast(a)).lane[0];
    case Function::exponential_of_negative:
      return kernels::exponential_of_negative(Vector::broadcast(a)).lane[0];
    case Function::round_even:
      return kernels::round_even(Vector::broadcast(a)).lane[0];
    case Function::from_f16:
      return to_float(F16{low_bits});
    case Function::to_f16:
      return std::bit_cast<float>(std::uint32_t{to_f16(a).bits});
    case Function::from_bf16:
      return to_float(Bf16{low_bits});
    case Function::to_bf16:
      return std::bit_cast<float>(std::uint32_t{to_bf16(a).bits});
    case Function::native_multiply:
      return a * b;
    case Function::native_add:
      return a + b;
  }
  return 0.0F;
}

void run_arithmetic(const Step& step, Ranges ranges) {
  const auto numbers = step.numbers_as<ArithmeticNumbers>();
  const auto* const a = as<float>(ranges[0]);
  const auto* const b = as<float>(ranges[1]);
  const auto* const c = as<float>(ranges[2]);
  auto* const y = as<float>(ranges[3]);
  for (std::uint32_t i = 0; i < numbers.n; ++i) y[i] = answer(numbers.function, a[i], b[i], c[i]);
}

}  // namespace

void run_on_host(const Step& step, std::span<std::byte* const> ranges) {
  switch (step.kernel) {
    case Kernel::arithmetic:
      return run_arithmetic(step, ranges);
    case Kernel::quantize_rows:
      return run_quantize_rows(step, ranges);
    case Kernel::product_int8:
      return run_product(step, ranges, kernels::WeightKind::int8);
    case Kernel::product_int4:
      return run_product(step, ranges, kernels::WeightKind::int4);
    case Kernel::rms_norm:
      return run_rms_norm(step, ranges);
    case Kernel::layer_norm:
      return run_layer_norm(step, ranges);
    case Kernel::apply_rope:
      return run_apply_rope(step, ranges);
    case Kernel::norm_in_place:
    case Kernel::gate:
    case Kernel::activate:
    case Kernel::add_rows:
    case Kernel::add_bias:
    case Kernel::scale_rows:
    case Kernel::copy_rows:
    case Kernel::best_of_rows:
    case Kernel::cap_rows:
      return run_rows_on_host(step, ranges);
    case Kernel::store_rows:
    case Kernel::move_slots:
      return run_cache_on_host(step, ranges);
    case Kernel::attend_f32:
      return attend_on_host(step, ranges, kernels::KvKind::f32);
    case Kernel::attend_bf16:
      return attend_on_host(step, ranges, kernels::KvKind::bf16);
    case Kernel::attend_int8:
      return attend_on_host(step, ranges, kernels::KvKind::int8);
    case Kernel::merge_splits:
      return merge_splits_on_host(step, ranges);
  }
}

}  // namespace outrider::device
