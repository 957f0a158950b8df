// SPDX-License-Identifier: Apache-2.0
#include "device/row_steps.h"

#include <utility>

#include "device/make_step.h"

namespace outrider::device {
namespace {

std::array<std::uint32_t, 3> grid_over(std::uint32_t n, const Rows& rows) {
  return {parts_of(n, kLanesOfGroup), word(rows.max_rows), 1};
}

}  // namespace

Step norm_in_place(const Rows& rows, const Range& x, const Range& weight,
                   const PieceNumbers& shape) {
  PieceNumbers numbers = shape;
  numbers.max_rows = word(rows.max_rows);
  Step step =
      step_of(Kernel::norm_in_place, {reads(rows.facts), changes(x), reads(weight)}, numbers);
  step.grid = {word(rows.max_rows), shape.n_pieces, 1};
  return step;
}

Step gate(const Rows& rows, GateActivation activation, int n, const Range& gate, const Range& up,
          const Range& y) {
  Step step = step_of(Kernel::gate, {reads(rows.facts), reads(gate), reads(up), writes(y)},
                      GateNumbers{word(n), word(rows.max_rows)});
  step.variant = static_cast<std::uint32_t>(activation);
  step.grid = grid_over(word(n), rows);
  return step;
}

Step activate(const Rows& rows, GateActivation activation, int n, const Range& x) {
  Step step = step_of(Kernel::activate, {reads(rows.facts), changes(x)},
                      GateNumbers{word(n), word(rows.max_rows)});
  step.variant = static_cast<std::uint32_t>(activation);
  step.grid = grid_over(word(n), rows);
  return step;
}

Step add_rows(const Rows& rows, int n, const Range& to, const Range& from) {
  Step step = step_of(Kernel::add_rows, {reads(rows.facts), changes(to), reads(from)},
                      AddNumbers{word(n), word(rows.max_rows)});
  step.grid = grid_over(word(n), rows);
  return step;
}

Step add_bias(const Rows& rows, const Range& x, const Columns& columns, const Range& bias) {
  Step step =
      step_of(Kernel::add_bias, {reads(rows.facts), changes(x), reads(bias)},
              ColumnNumbers{columns.stride, columns.first, columns.n, word(rows.max_rows), 1});
  step.grid = grid_over(columns.n, rows);
  return step;
}

Step scale_rows(const Rows& rows, const Range& x, const Columns& columns, float scale) {
  Step step =
      step_of(Kernel::scale_rows, {reads(rows.facts), changes(x)},
              ColumnNumbers{columns.stride, columns.first, columns.n, word(rows.max_rows), scale});
  step.grid = grid_over(columns.n, rows);
  return step;
}

Step cap_rows(const Rows& rows, int n, const Range& x, float cap) {
  Step step = step_of(Kernel::cap_rows, {reads(rows.facts), changes(x)},
                      CapNumbers{word(n), word(rows.max_rows), cap, 1.0F / cap});
  step.grid = grid_over(word(n), rows);
  return step;
}

Step copy_rows(const Rows& rows, const Range* picked, const Range& from,
               const Columns& from_columns, const Range& to, const Columns& to_columns) {
  const CopyNumbers numbers = {.from_stride = from_columns.stride,
                               .from_first = from_columns.first,
                               .to_stride = to_columns.stride,
                               .to_first = to_columns.first,
                               .n = from_columns.n,
                               .max_rows = word(rows.max_rows),
                               .picks = picked != nullptr ? 1U : 0U};
  const Range& of_rows = picked != nullptr ? *picked : rows.facts;  // unused without `picks`
  // Columns beside these are kept, so this is not a write of the whole range.
  Step step = step_of(Kernel::copy_rows,
                      {reads(rows.facts), reads(of_rows), reads(from), changes(to)}, numbers);
  step.grid = grid_over(numbers.n, rows);
  return step;
}

std::array<Step, 2> best_of_rows(const Rows& rows, int n, const Range& x, const Range& parts,
                                 const Range& best) {
  const std::uint32_t n_parts = word(parts_of_best(n));
  Step of_parts = step_of(Kernel::best_of_rows, {reads(rows.facts), reads(x), writes(parts)},
                          BestNumbers{word(n), kPartOfBest, n_parts, word(rows.max_rows)});
  of_parts.variant = 0;  // reads numbers
  of_parts.grid = {n_parts, word(rows.max_rows), 1};
  Step of_all = step_of(Kernel::best_of_rows, {reads(rows.facts), reads(parts), writes(best)},
                        BestNumbers{n_parts, n_parts, 1, word(rows.max_rows)});
  of_all.variant = 1;  // reads parts
  of_all.grid = {1, word(rows.max_rows), 1};
  return {std::move(of_parts), std::move(of_all)};
}

}  // namespace outrider::device
