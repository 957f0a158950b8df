#include "model/cache/recurrence.h"

#include <algorithm>
#include <cstddef>

namespace outrider {
namespace {

// n channels of a window of n_tokens, (n_tokens, width): the oldest token's make room.
void shift(const float* inputs, int first, int n, int n_tokens, int width, float* window) {
  float* to = window + first;
  for (int token = 1; token < n_tokens; ++token, to += width) std::copy_n(to + width, n, to);
  std::copy_n(inputs + first, n, to);
}

void advance_delta(const kernels::KernelTable& table, const DeltaShape& shape, int key_head,
                   const float* inputs, float* state) {
  const auto shift_channels = [&](int first, int n) {
    shift(inputs, first, n, shape.n_taps - 1, shape.convolved_width(), state);
  };
  shift_channels(shape.query_channel(key_head), shape.key_dim);
  shift_channels(shape.key_channel(key_head), shape.key_dim);
  for (int i = 0; i < shape.group(); ++i) {
    const int head = shape.value_head(key_head, i);
    shift_channels(shape.value_channel(head), shape.value_dim);
    float* const matrix = state + shape.matrix_at(head);
    const auto stride = static_cast<std::size_t>(shape.value_dim);
    table.delta_step({.from = matrix,
                      .from_stride = stride,
                      .to = matrix,
                      .to_stride = stride,
                      .key = inputs + shape.key_at(key_head),
                      .value = inputs + shape.value_at(head),
                      .beta = inputs[shape.beta_at(head)],
                      .decay = inputs[shape.decay_at(head)],
                      .query = nullptr,
                      .out = nullptr,
                      .key_dim = shape.key_dim,
                      .n = shape.value_dim});
  }
}

}  // namespace

int n_units(const RecurrentShape& shape) {
  return shape.recurrence == Recurrence::delta ? shape.delta.n_key_heads : 1;
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
      return advance_delta(table, shape.delta, unit, inputs, state);
  }
}

}  // namespace outrider
