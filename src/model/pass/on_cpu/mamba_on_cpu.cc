// SPDX-License-Identifier: Apache-2.0
// op::Recur for Mamba-2 on the CPU: one thread's share.
//
// The heads of a group share B and C, and in Granite 4 all heads form one group. So there are two
// ops. The first convolves: each thread some channels of all rows. After a barrier, the second
// passes the states over the nodes: each thread some heads.
#include <algorithm>
#include <cstddef>

#include "base/elementary.h"
#include "model/pass/on_cpu/cpu_ops.h"

namespace outrider {

void CpuOps::recur(const op::Recur& op, const op::Recur::MambaInputs& layer) const {
  const KernelTable& table = *pass.machine_.table;
  const Mamba2& mamba = *layer.mamba;
  const DeltaShape& shape = mamba.shape;
  const int width = shape.convolved_width();
  constexpr int kUnit = kernels::kGroup;
  const Range mine = team.share((width + kUnit - 1) / kUnit);
  const auto begin = static_cast<int>(mine.begin) * kUnit;
  const int end = std::min(static_cast<int>(mine.end) * kUnit, width);
  const Filter filter{mamba.filter, mamba.filter_bias, shape.n_taps, width};
  // A row's ancestors in the pass are earlier rows.
  for (int i = 0; i < pass.plan_.n_rows(); ++i) {
    const PassRow& its = pass.plan_.rows()[static_cast<std::size_t>(i)];
    float* const inputs = its.sequence->inputs(its.node, op.cache_layer);
    const ConvolutionWindow window = find_window(its, op.cache_layer, shape.n_taps, width);
    // Convolves the thread's part of the rows' channels, which begin at `channel`, into `to`.
    const auto convolve_part = [&](const Rows& rows, int channel, float* to) {
      const int first = std::max(begin, channel);
      const int n = std::min(end, channel + rows.width) - first;
      if (n <= 0) return;
      float* const product = row(rows, i) + (first - channel);
      if (!rows.bias->empty()) table.add(product, rows.bias->data() + (first - channel), n);
      convolve_channels(filter, window, product, first, n, inputs, to + (first - channel));
    };
    convolve_part(layer.query, shape.query_channel(0), row(layer.query, i));
    convolve_part(layer.key, shape.key_channel(0), inputs + shape.key_at(0));
    convolve_part(layer.value, shape.value_channel(0), inputs + shape.value_at(0));
  }
}

void CpuOps::recur(const op::Recur& op, const op::Recur::Mamba& layer) const {
  const Mamba2& mamba = *layer.mamba;
  const DeltaShape& shape = mamba.shape;
  const int n_rows = pass.plan_.n_rows();
  const auto inputs_of = [&](int i) {
    const PassRow& its = pass.plan_.rows()[static_cast<std::size_t>(i)];
    return its.sequence->inputs(its.node, op.cache_layer);
  };
  const Range mine = team.share(shape.n_value_heads);
  for (auto head = static_cast<int>(mine.begin); head < mine.end; ++head) {
    const auto place = static_cast<std::size_t>(head);
    for (int i = 0; i < n_rows; ++i) {
      float product = row(layer.step, i)[head];
      if (!layer.step.bias->empty()) product += (*layer.step.bias)[place];
      const auto length =
          static_cast<float>(portable_softplus(double{product} + mamba.step_bias[place]));
      const float step = std::clamp(length, mamba.min_step, mamba.max_step);
      float* const inputs = inputs_of(i);
      inputs[shape.beta_at(head)] = step;
      inputs[shape.decay_at(head)] =
          static_cast<float>(portable_exp(double{mamba.decay_rates[place]} * step));
    }
    walk_states({shape, op.cache_layer, layer.query, op.to, pass.machine_.table->mamba_step}, head);
    for (int i = 0; i < n_rows; ++i) {
      const float* const x = inputs_of(i) + shape.value_at(head);
      float* const y = row(op.to, i) + head * shape.value_dim;
      for (int j = 0; j < shape.value_dim; ++j) y[j] += mamba.skip[place] * x[j];
    }
  }
}

}  // namespace outrider
