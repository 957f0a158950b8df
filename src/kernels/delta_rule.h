// SPDX-License-Identifier: Apache-2.0
// The gated delta rule (Yang et al., "Gated Delta Networks", 2024) and Mamba-2's step (Dao and Gu,
// 2024) over a vector type V. A head's state has key_dim rows of n columns; lanes are columns.
#ifndef OUTRIDER_KERNELS_DELTA_RULE_H_
#define OUTRIDER_KERNELS_DELTA_RULE_H_

#include <cstddef>

#include "kernels/layout.h"
#include "kernels/table.h"
#include "kernels/vectors/float_vector.h"
#include "kernels/vectors/vector_math.h"

namespace outrider::kernels {
namespace {

// Vectors of columns processed together: one independent sum for each cycle of a fused
// multiply-add's latency (4), with one load a cycle. Calculated; other numbers are unmeasured.
constexpr int kDeltaVectors = 4;

// Columns [at, at + 16 kVectors) of the step, up to n. kSubtracts: subtracts from the value what
// the state gives for the key. kHasOutput: computes the output.
template <FloatVector V, int kVectors, bool kSubtracts, bool kHasOutput>
void step_columns(const DeltaStep& step, int at) {
  const V decay = V::broadcast(step.decay);
  V sums[kVectors];
  for (V& sum : sums) sum = V::zero();
  const float* from = step.from;
  for (int i = 0; kSubtracts && i < step.key_dim; ++i, from += step.from_stride) {
    const V key = V::broadcast(step.key[i]);
    for (int v = 0; v < kVectors; ++v) {
      sums[v] = fma(key, load_at<V>(from, at + v * kLanes, step.n) * decay, sums[v]);
    }
  }
  V deltas[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    const V value = load_at<V>(step.value, at + v * kLanes, step.n);
    deltas[v] = V::broadcast(step.beta) * (kSubtracts ? value - sums[v] : value);
    sums[v] = V::zero();
  }
  from = step.from;
  float* to = step.to;
  for (int i = 0; i < step.key_dim; ++i, from += step.from_stride, to += step.to_stride) {
    const V key = V::broadcast(step.key[i]);
    const V query = V::broadcast(kHasOutput ? step.query[i] : 0.0F);
    for (int v = 0; v < kVectors; ++v) {
      const int column = at + v * kLanes;
      const V state = fma(key, deltas[v], load_at<V>(from, column, step.n) * decay);
      store_at(state, to, column, step.n);
      if constexpr (kHasOutput) sums[v] = fma(query, state, sums[v]);
    }
  }
  if constexpr (!kHasOutput) return;
  for (int v = 0; v < kVectors; ++v) store_at(sums[v], step.out, at + v * kLanes, step.n);
}

template <FloatVector V, bool kSubtracts, bool kHasOutput>
void step_all_columns(const DeltaStep& step) {
  int at = 0;
  for (; at + kDeltaVectors * kLanes <= step.n; at += kDeltaVectors * kLanes) {
    step_columns<V, kDeltaVectors, kSubtracts, kHasOutput>(step, at);
  }
  for (; at < step.n; at += kLanes) step_columns<V, 1, kSubtracts, kHasOutput>(step, at);
}

template <FloatVector V>
void delta_step(const DeltaStep& step) {
  step.query != nullptr ? step_all_columns<V, true, true>(step)
                        : step_all_columns<V, true, false>(step);
}

template <FloatVector V>
void mamba_step(const DeltaStep& step) {
  step.query != nullptr ? step_all_columns<V, false, true>(step)
                        : step_all_columns<V, false, false>(step);
}

}  // namespace
}  // namespace outrider::kernels

#endif  // OUTRIDER_KERNELS_DELTA_RULE_H_
