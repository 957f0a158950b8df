// SPDX-License-Identifier: Apache-2.0
// Steps on a pass's rows between products, besides those of kernel_steps.h. Each is an op of a pass
// (model/pass/op.h), a part of one, or the likeliest token, with the scalar kernel table's bits.
#ifndef OUTRIDER_DEVICE_ROW_STEPS_H_
#define OUTRIDER_DEVICE_ROW_STEPS_H_

#include <array>
#include <cstdint>

#include "device/kernel_steps.h"
#include "device/step.h"

namespace outrider::device {

// Some columns of rows that are `stride` floats apart.
struct Columns {
  std::uint32_t stride = 0;
  std::uint32_t first = 0;
  std::uint32_t n = 0;
};

struct PieceNumbers {
  std::uint32_t stride, first, n, n_pieces, weight_step, max_rows;
  float epsilon;
};
// Applies rms_norm to each of n_pieces consecutive parts of a row, n floats each, from column
// `first` on. weight f32: weight_step 0: (n), for every part; weight_step n: (n_pieces, n). The
// number of rows is that of `rows`; max_rows of `shape` is not read.
Step norm_in_place(const Rows& rows, const Range& x, const Range& weight,
                   const PieceNumbers& shape);

enum class GateActivation : std::uint32_t { silu, gelu_tanh, gelu_erf };
struct GateNumbers {
  std::uint32_t n, max_rows;
};
// y = activation(gate) * up, all f32 (max_rows, n).
Step gate(const Rows& rows, GateActivation activation, int n, const Range& gate, const Range& up,
          const Range& y);
// x = activation(x), f32 (max_rows, n).
Step activate(const Rows& rows, GateActivation activation, int n, const Range& x);

struct AddNumbers {
  std::uint32_t n, max_rows;
};
// to += from, f32 (max_rows, n) each.
Step add_rows(const Rows& rows, int n, const Range& to, const Range& from);

struct ColumnNumbers {
  std::uint32_t stride, first, n, max_rows;
  float scale;
};
// x += bias, f32 (n).
Step add_bias(const Rows& rows, const Range& x, const Columns& columns, const Range& bias);
// x *= scale.
Step scale_rows(const Rows& rows, const Range& x, const Columns& columns, float scale);

struct CapNumbers {
  std::uint32_t n, max_rows;
  float cap, inverse;
};
// x = cap tanh(x / cap), f32 (max_rows, n); cap above 0, with a finite inverse.
Step cap_rows(const Rows& rows, int n, const Range& x, float cap);

struct CopyNumbers {
  std::uint32_t from_stride, from_first, to_stride, to_first, n, max_rows, picks;
};
// Row i of `to` = row i of `from`, or with `picked`, u32 (max_rows), the row picked[i]. Elements:
// any type of 32 bits. Both have the same n.
Step copy_rows(const Rows& rows, const Range* picked, const Range& from,
               const Columns& from_columns, const Range& to, const Columns& to_columns);

// The index and bits of the largest of some numbers. Among equals the first, and -0 equals 0; a NaN
// only if all are NaN, and then the first.
struct BestOfRow {
  std::uint32_t index;
  std::uint32_t bits;
};
struct BestNumbers {
  std::uint32_t n, part, n_parts, max_rows;
};
// Numbers that a workgroup compares: thirty-two for each lane.
inline constexpr std::uint32_t kPartOfBest = 2048;
constexpr int parts_of_best(int n) {
  return static_cast<int>((static_cast<std::uint32_t>(n) + kPartOfBest - 1) / kPartOfBest);
}
// x f32 (max_rows, n), n above 0; best BestOfRow (max_rows). Between the two steps parts holds
// BestOfRow (max_rows, parts_of_best(n)).
std::array<Step, 2> best_of_rows(const Rows& rows, int n, const Range& x, const Range& parts,
                                 const Range& best);

}  // namespace outrider::device

#endif  // OUTRIDER_DEVICE_ROW_STEPS_H_
