// Steps on a pass's rows between products, besides those of kernel_steps.h. Each does for all rows
// what an op of a pass does for one (model/pass/op.h), with the scalar kernel table's bits.
#ifndef OUTRIDER_DEVICE_ROW_STEPS_H_
#define OUTRIDER_DEVICE_ROW_STEPS_H_

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
  std::uint32_t stride, first, n, n_pieces, weight_step, most_rows;
  float epsilon;
};
// Applies rms_norm to each of n_pieces consecutive parts of a row, n floats each, from column
// `first` on. weight f32: the same for all parts (n), or one per part (weight_step n).
Step norm_in_place(const Rows& rows, const Range& x, const Range& weight,
                   const PieceNumbers& shape);

enum class GateActivation : std::uint32_t { silu, gelu_tanh };
struct GateNumbers {
  std::uint32_t n, most_rows;
};
// y = activation(gate) * up, all f32 (most, n).
Step gate(const Rows& rows, GateActivation activation, int n, const Range& gate, const Range& up,
          const Range& y);

struct AddNumbers {
  std::uint32_t n, most_rows;
};
// to += from, f32 (most, n) each.
Step add_rows(const Rows& rows, int n, const Range& to, const Range& from);

struct ColumnNumbers {
  std::uint32_t stride, first, n, most_rows;
  float scale;
};
// x += bias, f32 (n).
Step add_bias(const Rows& rows, const Range& x, const Columns& columns, const Range& bias);
// x *= scale.
Step scale_rows(const Rows& rows, const Range& x, const Columns& columns, float scale);

struct CopyNumbers {
  std::uint32_t from_stride, from_first, to_stride, to_first, n, most_rows, picks;
};
// Row i of `to` = row i of `from`, or with `picked`, u32 (most), the row picked[i]. Both have the
// same n.
Step copy_rows(const Rows& rows, const Range* picked, const Range& from,
               const Columns& from_columns, const Range& to, const Columns& to_columns);

}  // namespace outrider::device

#endif  // OUTRIDER_DEVICE_ROW_STEPS_H_
