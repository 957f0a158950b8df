// The tokens that a convolution over the last ones reads, and its sum.
#ifndef OUTRIDER_MODEL_PASS_CONVOLUTION_WINDOW_H_
#define OUTRIDER_MODEL_PASS_CONVOLUTION_WINDOW_H_

#include <algorithm>
#include <array>
#include <cstddef>

#include "model/pass/blocks.h"
#include "model/pass/pass_plan.h"

namespace outrider {

// Inputs of all channels, of each token, oldest first.
using ConvolutionWindow = std::array<const float*, kMostTaps>;

// Of n_taps tokens. Of each its inputs, where it is an ancestor of the row that is pending, or the
// row; else the state has them at its beginning, (n_taps - 1, width).
inline ConvolutionWindow find_window(const PassRow& row, int cache_layer, int n_taps, int width) {
  const KvSequence& sequence = *row.sequence;
  ConvolutionWindow window{};
  int place = n_taps - 1;
  for (int node = row.node; node >= 0 && place >= 0; node = sequence.parent(node), --place) {
    window[static_cast<std::size_t>(place)] = sequence.inputs(node, cache_layer);
  }
  // The last kept token stands at the window's end in the state.
  const float* kept = sequence.state(cache_layer) + static_cast<std::ptrdiff_t>(n_taps - 2) * width;
  for (; place >= 0; --place, kept -= width) window[static_cast<std::size_t>(place)] = kept;
  return window;
}

// y (n) = sum over taps of weight * input, of the channels from `first` on; weights (n_taps,
// width). One order of the sum, on every table.
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
