// SPDX-License-Identifier: Apache-2.0
#include "model/thread_share.h"

#include <algorithm>

namespace outrider {
namespace {

// One row streams the weights from the caches at about 25 bytes per nanosecond, and each row
// computes about 50 products per nanosecond.
constexpr std::int64_t kBytesPer_ns = 25;
constexpr std::int64_t kProductsPer_ns = 50;

}  // namespace

int threads_for(std::int64_t weight_bytes, std::int64_t n_products, std::int64_t min_share_ns,
                int n_threads) {
  if (min_share_ns == 0) return n_threads;
  const std::int64_t work_ns = weight_bytes / kBytesPer_ns + n_products / kProductsPer_ns;
  return static_cast<int>(std::clamp<std::int64_t>(work_ns / min_share_ns, 1, n_threads));
}

}  // namespace outrider
