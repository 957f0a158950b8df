// SPDX-License-Identifier: Apache-2.0
#include "eval/frontiers/expected_passes.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace outrider::eval {

double expected_passes(std::span<const double> acceptance, int length) {
  const std::size_t n = acceptance.size();
  std::vector<double> begins(n + 1, 0.0);
  if (n > 0) begins[0] = 1;
  double passes = 0;
  for (std::size_t i = 0; i < n; ++i) {
    passes += begins[i];
    // The decoder drafts one token less than allowed: the round's last token is its own.
    const std::size_t draft = std::min(static_cast<std::size_t>(length), n - 1 - i);
    double stands = begins[i];  // and all drafted before it were accepted
    for (std::size_t m = 0; m < draft; ++m) {
      const double accepted = std::min(acceptance[i + m], 1.0);
      begins[i + m + 1] += stands * (1 - accepted);
      stands *= accepted;
    }
    begins[i + draft + 1] += stands;
  }
  return passes;
}

}  // namespace outrider::eval
