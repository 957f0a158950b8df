// SPDX-License-Identifier: Apache-2.0
#include "device/barriers.h"

#include <algorithm>

namespace outrider::device {
namespace {

bool conflict(const Use& earlier, const Use& later) {
  return (earlier.writes() || later.writes()) && earlier.range.overlaps(later.range);
}

}  // namespace

std::vector<std::size_t> derive_barriers(std::span<const Step> steps) {
  std::vector<std::size_t> barriers;
  std::vector<Use> under_way;  // of the steps since the last barrier
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const std::vector<Use>& uses = steps[i].uses;
    const bool waits = std::any_of(uses.begin(), uses.end(), [&](const Use& later) {
      return std::any_of(under_way.begin(), under_way.end(),
                         [&](const Use& earlier) { return conflict(earlier, later); });
    });
    if (waits) {
      barriers.push_back(i);
      under_way.clear();
    }
    under_way.insert(under_way.end(), uses.begin(), uses.end());
  }
  return barriers;
}

}  // namespace outrider::device
