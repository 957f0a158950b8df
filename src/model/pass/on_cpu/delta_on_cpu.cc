// SPDX-License-Identifier: Apache-2.0
// op::Recur for a gated delta rule on the CPU: one thread's share.
//
// A thread owns key heads with their value heads for all rows: no other thread reads or writes
// their channels. For each head it first computes the inputs of all rows. Then the state passes
// over the nodes, some columns at a time, and the outputs are normalised.
#include <cstddef>
#include <vector>

#include "base/elementary.h"
#include "model/pass/on_cpu/cpu_ops.h"

namespace outrider {

// Convolves one row's channels of a key head and its value heads. The query replaces its product;
// key, values, beta and decay go to the node's inputs.
void CpuOps::make_delta_inputs(const op::Recur& op, const op::Recur::Delta& layer, int i,
                               int key_head) const {
  const KernelTable& table = *pass.machine_.table;
  const DeltaNet& net = *layer.net;
  const DeltaShape& shape = net.shape;
  const PassRow& its = pass.plan_.rows()[static_cast<std::size_t>(i)];
  float* const inputs = its.sequence->inputs(its.node, op.cache_layer);
  const ConvolutionWindow window =
      find_window(its, op.cache_layer, shape.n_taps, shape.convolved_width());
  const std::vector<float> no_bias;
  const Filter filter{net.filter, no_bias, shape.n_taps, shape.convolved_width()};
  const auto convolve_part = [&](const float* product, int channel, int n, float* to) {
    convolve_channels(filter, window, product, channel, n, inputs, to);
  };
  float* const query = row(layer.query, i) + key_head * shape.key_dim;
  float* const key = inputs + shape.key_at(key_head);
  convolve_part(query, shape.query_channel(key_head), shape.key_dim, query);
  convolve_part(row(layer.key, i) + key_head * shape.key_dim, shape.key_channel(key_head),
                shape.key_dim, key);
  const auto normalise = [&](const Norm& norm, float* x) {
    table.rms_norm(x, norm.weight.data(), shape.key_dim, norm.epsilon, x);
  };
  normalise(net.query_norm, query);
  normalise(net.key_norm, key);
  for (int member = 0; member < shape.group(); ++member) {
    const int head = shape.value_head(key_head, member);
    convolve_part(row(layer.value, i) + head * shape.value_dim, shape.value_channel(head),
                  shape.value_dim, inputs + shape.value_at(head));
    const auto place = static_cast<std::size_t>(head);
    const double beta = row(layer.beta, i)[head];
    const double step = row(layer.decay, i)[head] + net.decay_bias[place];
    inputs[shape.beta_at(head)] = static_cast<float>(1 / (1 + portable_exp(-beta)));
    inputs[shape.decay_at(head)] =
        static_cast<float>(portable_exp(net.decay_rates[place] * portable_softplus(step)));
  }
}

void CpuOps::recur(const op::Recur& op, const op::Recur::Delta& layer) const {
  const KernelTable& table = *pass.machine_.table;
  const DeltaShape& shape = layer.net->shape;
  const int n_rows = pass.plan_.n_rows();
  const Range mine = team.share(shape.n_key_heads);
  for (auto key_head = static_cast<int>(mine.begin); key_head < mine.end; ++key_head) {
    for (int i = 0; i < n_rows; ++i) make_delta_inputs(op, layer, i, key_head);
    for (int member = 0; member < shape.group(); ++member) {
      const int head = shape.value_head(key_head, member);
      walk_states({shape, op.cache_layer, layer.query, op.to, table.delta_step}, head);
      const Norm& norm = layer.net->norm;
      for (int i = 0; i < n_rows; ++i) {
        float* const out = row(op.to, i) + head * shape.value_dim;
        table.rms_norm(out, norm.weight.data(), shape.value_dim, norm.epsilon, out);
        table.silu_multiply(row(layer.gate, i) + head * shape.value_dim, out, shape.value_dim, out);
      }
    }
  }
}

}  // namespace outrider
