// SPDX-License-Identifier: Apache-2.0
#include "model/pass/on_cpu/rope_angles.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/elementary.h"

namespace outrider {

void rope_angles(const RopeTable& rope, const PassRow& row, float* cosines, float* sines) {
  // A caller that continues beyond context_of() gets the same as a pass over that token alone.
  const int n_tokens = std::max(row.position + 1, row.sequence->prompt_length());
  const std::vector<double>& frequencies = rope.long_frequencies.empty() || rope.is_short(n_tokens)
                                               ? rope.frequencies
                                               : rope.long_frequencies;
  const double magnitude = rope.magnitude;
  for (std::size_t pair = 0; pair < rope.frequencies.size(); ++pair) {
    const SineCosine angle = portable_sincos(row.position * frequencies[pair]);
    cosines[pair] = static_cast<float>(magnitude * angle.cosine);
    sines[pair] = static_cast<float>(magnitude * angle.sine);
  }
}

}  // namespace outrider
