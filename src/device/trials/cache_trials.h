// SPDX-License-Identifier: Apache-2.0
// Trials of the steps of cache_steps.h.
#ifndef OUTRIDER_DEVICE_TRIALS_CACHE_TRIALS_H_
#define OUTRIDER_DEVICE_TRIALS_CACHE_TRIALS_H_

#include <cstdint>

#include "device/cache_steps.h"
#include "device/trials/trial.h"
#include "device/trials/trial_numbers.h"

namespace outrider::device {

// Stores rows into pages that hold other bytes: adjacent rows, which share words of the cache,
// across a page boundary. has_infinities: some rows have an infinity or a NaN.
Trial store_trial(const CacheShape& shape, const TrialRows& rows, bool has_infinities,
                  std::uint32_t seed);
// rows.n moves towards the beginning, as for a kept path, in pages with all slots in use: each
// writes where an earlier one has read.
Trial move_trial(const CacheShape& shape, const TrialRows& rows, std::uint32_t seed);

}  // namespace outrider::device

#endif  // OUTRIDER_DEVICE_TRIALS_CACHE_TRIALS_H_
