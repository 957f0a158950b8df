// What op::Recur does on the CPU: one thread's share of it.
#include <algorithm>
#include <array>

#include "model/pass/cpu_ops.h"

namespace outrider {
namespace {

// n channels of a convolution's window, oldest token first. Of each token its inputs, where it is
// an ancestor of the row that is pending; else the state has them.
using Window = std::array<const float*, ShortConvolution::kMostTaps>;

Window find_window(const PassRow& row, const op::Recur& op, int first) {
  const KvSequence& sequence = *row.sequence;
  Window window{};
  int place = op.convolution->n_taps - 1;
  for (int node = row.node; node >= 0 && place >= 0; node = sequence.parent(node), --place) {
    window[static_cast<std::size_t>(place)] = sequence.inputs(node, op.cache_layer) + first;
  }
  // The state has n_taps - 1 tokens, the last kept one at its end.
  const float* kept = sequence.state(op.cache_layer) +
                      static_cast<std::ptrdiff_t>(op.convolution->n_taps - 2) * op.to.width + first;
  for (; place >= 0; --place, kept -= op.to.width) window[static_cast<std::size_t>(place)] = kept;
  return window;
}

void add_to(float* values, const std::vector<float>& bias, int first, int n) {
  if (bias.empty()) return;
  for (int i = 0; i < n; ++i) values[i] += bias[static_cast<std::size_t>(first + i)];
}

// y = gate * (sum over taps of weight * window + bias), of the channels from `first` on. One order
// of the sum, on every table.
void convolve(const ShortConvolution& convolution, const Window& window, const float* gate,
              int first, int n, float* y) {
  std::fill_n(y, n, 0.0F);
  const float* weight = convolution.weight.data() + first;
  for (int tap = 0; tap < convolution.n_taps; ++tap, weight += convolution.width()) {
    const float* const inputs = window[static_cast<std::size_t>(tap)];
    for (int i = 0; i < n; ++i) y[i] += weight[i] * inputs[i];
  }
  add_to(y, convolution.bias, first, n);
  for (int i = 0; i < n; ++i) y[i] *= gate[i];
}

}  // namespace

// Row by row, all channels of the thread: a row's ancestors in the pass are rows before it.
void CpuOps::operator()(const op::Recur& op) const {
  const ShortConvolution& convolution = *op.convolution;
  const int width = op.to.width;
  Activations& to = buffer(op.to);
  const int unit = to.unit();
  const Range mine = team.share((width + unit - 1) / unit);
  const int first = static_cast<int>(mine.begin) * unit;
  const int n = std::min(static_cast<int>(mine.end) * unit, width) - first;
  if (n <= 0) return;
  for (int i = 0; i < pass.plan_.n_rows(); ++i) {
    const PassRow& its = pass.plan_.rows()[static_cast<std::size_t>(i)];
    float* const b = row(op.from, i) + first;
    float* const c = b + width;
    float* const x = c + width;
    add_to(b, *op.from.bias, first, n);
    add_to(c, *op.from.bias, width + first, n);
    add_to(x, *op.from.bias, 2 * width + first, n);
    float* const inputs = its.sequence->inputs(its.node, op.cache_layer) + first;
    for (int j = 0; j < n; ++j) inputs[j] = b[j] * x[j];
    convolve(convolution, find_window(its, op, first), c, first, n, to.row(i) + first);
    to.finish_part(*pass.machine_.table, i, first, n);
  }
}

}  // namespace outrider
