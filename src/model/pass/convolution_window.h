// SPDX-License-Identifier: Apache-2.0
// The tokens that a convolution over the last ones reads, and its sum.
#ifndef OUTRIDER_MODEL_PASS_CONVOLUTION_WINDOW_H_
#define OUTRIDER_MODEL_PASS_CONVOLUTION_WINDOW_H_

#include <algorithm>
#include <array>
#include <cstddef>

#include "model/pass/blocks.h"
#include "model/pass/pass_plan.h"

namespace outrider {

// For each token, oldest first, the inputs of all channels.
using ConvolutionWindow = std::array<const float*, kMaxTaps>;

// The inputs of n_taps tokens. Those of the row and of its pending ancestors are with their nodes;
// earlier ones are at the beginning of the state, (n_taps - 1, width).
inline ConvolutionWindow find_window(const PassRow& row, int cache_layer, int n_taps, int width) {
  const KvSequence& sequence = *row.sequence;
  ConvolutionWindow window{};
  int place = n_taps - 1;
  for (int node = row.node; node >= 0 && place >= 0; node = sequence.parent(node), --place) {
    window[static_cast<std::size_t>(place)] = sequence.inputs(node, cache_layer);
  }
  // The last kept token is at the end of the window in the state.
  const float* kept = sequence.state(cache_layer) + static_cast<std::ptrdiff_t>(n_taps - 2) * width;
  for (; place >= 0; --place, kept -= width) window[static_cast<std::size_t>(place)] = kept;
  return window;
}

// y (n) = sum over taps of weight * input, for the channels from `first` on; weights (n_taps,
// width). Every table has the same order of the sum.
inline void convolve(const std::vector<float>& weights, int n_taps, int width,
                     const ConvolutionWindow& window, int first, int n, float* y) {
  std::fill_n(y, n, 0.0F);
  const float* weight = weights.data() + first;
  for (int tap = 0; tap < n_taps; ++tap, weight += width) {
    const float* const inputs = window[static_cast<std::size_t>(tap)] + first;
    for (int i = 0; i < n; ++i) y[i] += weight[i] * inputs[i];
  }
}

}  // namespace outrider

#endif  // OUTRIDER_MODEL_PASS_CONVOLUTION_WINDOW_H_
