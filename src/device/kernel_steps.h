// SPDX-License-Identifier: Apache-2.0
// The steps and what each computes: the work of a slot of the scalar kernel table, for all rows at
// once (kernels/table.h), with its layouts.
//
// Programs are recorded once for a maximum number of rows and run with any smaller number. A buffer
// of facts, written before each run, holds the actual number. All ranges hold floats, ints or bytes
// in the machine's byte order, without gaps.
#ifndef OUTRIDER_DEVICE_KERNEL_STEPS_H_
#define OUTRIDER_DEVICE_KERNEL_STEPS_H_

#include <cstddef>
#include <cstdint>

#include "device/step.h"
#include "kernels/table.h"

namespace outrider::device {

// Indices of words in the facts of a run.
inline constexpr std::size_t kFactRows = 0;  // the number of rows
inline constexpr std::size_t kFacts = 4;
using FactWords = std::array<std::uint32_t, kFacts>;

// The rows of a step recorded for `max_rows`, from its range of facts.
int rows_of(const std::byte* facts, std::uint32_t max_rows);

// The rows of a step: at most `max_rows`; the facts hold the actual number.
struct Rows {
  Range facts;
  int max_rows = 1;
};

// Rows in the form that products of quantised weights read (kernels/table.h), with `slots` >=
// row_slots(max_rows).
struct QuantizedRanges {
  Range values;       // int8 (groups, slots, 32)
  Range scales;       // f32 (groups, slots)
  Range sums;         // i32 (groups, slots)
  Range scaled_sums;  // f32 (groups, slots)
  int slots = 0;
};

struct QuantizeNumbers {
  std::uint32_t k, slots, max_rows;
};
// x f32 (max_rows, k). Rows with an infinity or a NaN are handled as in quantize_row.
Step quantize_rows(const Rows& rows, const Range& x, int k, const QuantizedRanges& out);

// A packed matrix (n_columns, k) in the layout of table `scalar`, or some columns of one that is
// split over several ranges.
struct WeightRange {
  kernels::WeightKind kind = kernels::WeightKind::int8;  // int8 or int4
  Range tiles;
  int n_columns = 0;
  int k = 0;
  int first_column = 0;  // of all of them
  int all_columns = 0;   // 0: n_columns
};
struct ProductNumbers {
  std::uint32_t n_columns, k, slots, max_rows, y_stride, y_first;
};
// y f32 (max_rows, all columns) = x W^T, for these columns only.
Step product(const Rows& rows, const WeightRange& weights, const QuantizedRanges& x,
             const Range& y);

struct NormNumbers {
  std::uint32_t n, max_rows;
  float epsilon;
};
// x, y f32 (max_rows, n); weight f32 (n).
Step rms_norm(const Rows& rows, const Range& x, const Range& weight, const NormNumbers& shape,
              const Range& y);

struct LayerNormNumbers {
  std::uint32_t n, max_rows;
  float epsilon;
  std::uint32_t has_bias, picks;
};
// As rms_norm, after the mean is subtracted; bias f32 (n), or null. For the rows in order, or for
// those listed in picked, u32 (max_rows), unless it is null.
Step layer_norm(const Rows& rows, const Range* picked, const Range& x, const Range& weight,
                const Range* bias, const NormNumbers& shape, const Range& y);

struct ApplyRopeNumbers {
  std::uint32_t n_heads, head_dim, half, max_rows;
};
// x f32 (max_rows, n_heads, head_dim), in place; cosines and sines f32 (max_rows, half). head_dim
// is at least 2 half.
Step apply_rope(const Rows& rows, const Range& x, const Range& cosines, const Range& sines,
                const ApplyRopeNumbers& shape);

// Single operations, for known answers: results must have the processor's bits (any NaN equals any
// NaN). Native ones are the driver's own, which the Vulkan specification does not fully define; the
// others use only what it defines (shaders/arithmetic.glsl).
enum class Function : std::uint32_t {
  fused,                    // a * b + c, rounded once
  divide,                   // a / b
  root,                     // of a
  exponential,              // e^a (kernels/vectors/vector_math.h)
  exponential_of_negative,  // the same, for a <= 0
  round_even,               // a, |a| < 2^22, to the nearest integer
  from_f16,                 // from a's low 16 bits
  to_f16,                   // from a, to the result's low 16 bits
  from_bf16,
  to_bf16,
  fused_by_integers,  // as fused, by integers on any device
  divide_by_integers,
  root_by_integers,
  native_fused,
  native_divide,
  native_root,
  native_multiply,
  native_add,
};
inline constexpr int kFunctions = 18;

struct ArithmeticNumbers {
  std::uint32_t n;
  Function function;
};
// a, b, c, y: n words each.
Step arithmetic(Function function, int n, const Range& a, const Range& b, const Range& c,
                const Range& y);

}  // namespace outrider::device

#endif  // OUTRIDER_DEVICE_KERNEL_STEPS_H_
