// SPDX-License-Identifier: Apache-2.0
// op::Recur on the CPU: one thread's share. Delta rules: delta_on_cpu.cc.
#include <algorithm>

#include "model/pass/convolution_window.h"
#include "model/pass/on_cpu/cpu_ops.h"

namespace outrider {
namespace {

void add_to(float* values, const std::vector<float>& bias, int first, int n) {
  if (bias.empty()) return;
  for (int i = 0; i < n; ++i) values[i] += bias[static_cast<std::size_t>(first + i)];
}

}  // namespace

void CpuOps::operator()(const op::Recur& op) const {
  std::visit([&](const auto& layer) { recur(op, layer); }, op.layer);
}

// Row by row, all channels of the thread: a row's ancestors in the pass are earlier rows.
void CpuOps::recur(const op::Recur& op, const op::Recur::Convolution& layer) const {
  const ShortConvolution& convolution = *layer.convolution;
  const int width = op.to.width;
  Activations& to = buffer(op.to);
  const int unit = to.unit();
  const Range mine = team.share((width + unit - 1) / unit);
  const int first = static_cast<int>(mine.begin) * unit;
  const int n = std::min(static_cast<int>(mine.end) * unit, width) - first;
  if (n <= 0) return;
  for (int i = 0; i < pass.plan_.n_rows(); ++i) {
    const PassRow& its = pass.plan_.rows()[static_cast<std::size_t>(i)];
    float* const b = row(layer.from, i) + first;
    float* const c = b + width;
    float* const x = c + width;
    add_to(b, *layer.from.bias, first, n);
    add_to(c, *layer.from.bias, width + first, n);
    add_to(x, *layer.from.bias, 2 * width + first, n);
    float* const inputs = its.sequence->inputs(its.node, op.cache_layer) + first;
    for (int j = 0; j < n; ++j) inputs[j] = b[j] * x[j];
    float* const y = to.row(i) + first;
    convolve(convolution.weight, convolution.n_taps, width,
             find_window(its, op.cache_layer, convolution.n_taps, width), first, n, y);
    add_to(y, convolution.bias, first, n);
    for (int j = 0; j < n; ++j) y[j] *= c[j];
    to.quantize_part(*pass.machine_.table, i, first, n);
  }
}

}  // namespace outrider
