// SPDX-License-Identifier: Apache-2.0
// Code shared by CPU layers with a state per node (gated delta rule, Mamba-2): the convolution
// before it, and the update of states over the nodes of a pass.
#include <algorithm>
#include <cstddef>

#include "model/pass/on_cpu/cpu_ops.h"

namespace outrider {

// A row's product (n) becomes the node's inputs of channels [channel, channel + n). Writes silu of
// their convolution to `to` (n), which may be product.
void CpuOps::convolve_channels(const Filter& filter, const ConvolutionWindow& window,
                               const float* product, int channel, int n, float* inputs,
                               float* to) const {
  const KernelTable& table = *pass.machine_.table;
  std::copy_n(product, n, inputs + channel);
  convolve(filter.weights, filter.n_taps, filter.width, window, channel, n, to);
  if (!filter.bias.empty()) table.add(to, filter.bias.data() + channel, n);
  table.silu_multiply(to, pass.ones_.data(), n, to);
}

void CpuOps::walk_states(const States& states, int head) const {
  for (int w = 0; w < pass.walks_.n_walks(); ++w) {
    for (int first = 0; first < states.shape.value_dim; first += kDeltaColumns) {
      walk_columns(states, pass.walks_.walk(w), head, first);
    }
  }
}

// Updates columns [first, first + n) of a value head's state over the nodes of one sequence: reads
// them once from the page, then uses this thread's slots.
void CpuOps::walk_columns(const States& states, const StateWalks::Walk& walk, int head,
                          int first) const {
  const DeltaShape& shape = states.shape;
  const int key_head = shape.key_head_of(head);
  const int n = std::min(kDeltaColumns, shape.value_dim - first);
  const float* const kept =
      walk.sequence->state(states.cache_layer) + shape.matrix_at(head) + first;
  const auto slot = [&](int index) {
    return pass.delta_slots_.data() +
           static_cast<std::size_t>(team.index() * pass.walks_.n_slots() + index) *
               static_cast<std::size_t>(shape.key_dim * kDeltaColumns);
  };
  for (const StateWalks::Visit& visit : walk.visits) {
    const float* const inputs = walk.sequence->inputs(visit.node, states.cache_layer);
    const bool is_first = visit.from == StateWalks::kKept;
    const bool is_row = visit.row >= 0;
    states.step(
        {.from = is_first ? kept : slot(visit.from),
         .from_stride = static_cast<std::size_t>(is_first ? shape.value_dim : kDeltaColumns),
         .to = slot(visit.to),
         .to_stride = kDeltaColumns,
         .key = inputs + shape.key_at(key_head),
         .value = inputs + shape.value_at(head) + first,
         .beta = inputs[shape.beta_at(head)],
         .decay = inputs[shape.decay_at(head)],
         .query = is_row ? row(states.query, visit.row) + key_head * shape.key_dim : nullptr,
         .out = is_row ? row(states.to, visit.row) + head * shape.value_dim + first : nullptr,
         .key_dim = shape.key_dim,
         .n = n});
  }
}

}  // namespace outrider
