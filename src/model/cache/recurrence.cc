// SPDX-License-Identifier: Apache-2.0
#include "model/cache/recurrence.h"

#include <algorithm>
#include <cstddef>

namespace outrider {
namespace {

// Shifts n channels of a window (n_tokens, width) by one token: the oldest is dropped, the inputs
// become the newest.
void shift(const float* inputs, int first, int n, int n_tokens, int width, float* window) {
  float* to = window + first;
  for (int token = 1; token < n_tokens; ++token, to += width) std::copy_n(to + width, n, to);
  std::copy_n(inputs + first, n, to);
}

struct Replayed {
  const DeltaShape& shape;
  const float* inputs;
  float* state;
};

void shift_channels(const Replayed& what, int first, int n) {
  const DeltaShape& shape = what.shape;
  shift(what.inputs, first, n, shape.n_taps - 1, shape.convolved_width(), what.state);
}

void shift_key_head(const Replayed& what, int key_head) {
  shift_channels(what, what.shape.query_channel(key_head), what.shape.key_dim);
  shift_channels(what, what.shape.key_channel(key_head), what.shape.key_dim);
}

// step: the kernel table's function.
void advance_head(const Replayed& what, int head, void (*step)(const kernels::DeltaStep&)) {
  const DeltaShape& shape = what.shape;
  const float* const inputs = what.inputs;
  shift_channels(what, shape.value_channel(head), shape.value_dim);
  float* const matrix = what.state + shape.matrix_at(head);
  const auto stride = static_cast<std::size_t>(shape.value_dim);
  step({.from = matrix,
        .from_stride = stride,
        .to = matrix,
        .to_stride = stride,
        .key = inputs + shape.key_at(shape.key_head_of(head)),
        .value = inputs + shape.value_at(head),
        .beta = inputs[shape.beta_at(head)],
        .decay = inputs[shape.decay_at(head)],
        .query = nullptr,
        .out = nullptr,
        .key_dim = shape.key_dim,
        .n = shape.value_dim});
}

void advance_delta(const kernels::KernelTable& table, const Replayed& what, int key_head) {
  shift_key_head(what, key_head);
  for (int i = 0; i < what.shape.group(); ++i) {
    advance_head(what, what.shape.value_head(key_head, i), table.delta_step);
  }
}

void advance_mamba(const kernels::KernelTable& table, const Replayed& what, int head) {
  const int group = what.shape.key_head_of(head);
  if (head == what.shape.value_head(group, 0)) shift_key_head(what, group);
  advance_head(what, head, table.mamba_step);
}

}  // namespace

int n_units(const RecurrentShape& shape) {
  switch (shape.recurrence) {
    case Recurrence::none:
    case Recurrence::convolution:
      return 1;
    case Recurrence::delta:
      return shape.delta.n_key_heads;
    case Recurrence::mamba:
      return shape.delta.n_value_heads;
  }
  return 1;
}

void advance(const kernels::KernelTable& table, const RecurrentShape& shape, int unit,
             const float* inputs, float* state) {
  switch (shape.recurrence) {
    case Recurrence::none:
      return;
    case Recurrence::convolution:
      return shift(inputs, 0, shape.input_width, shape.state_width / shape.input_width,
                   shape.input_width, state);
    case Recurrence::delta:
      return advance_delta(table, {shape.delta, inputs, state}, unit);
    case Recurrence::mamba:
      return advance_mamba(table, {shape.delta, inputs, state}, unit);
  }
}

}  // namespace outrider
