// SPDX-License-Identifier: Apache-2.0
// The learning rate over a run: a linear warm-up, then half a cosine down.
#ifndef OUTRIDER_TRAIN_SCHEDULE_H_
#define OUTRIDER_TRAIN_SCHEDULE_H_

#include <cmath>
#include <cstdint>
#include <numbers>

namespace outrider::train {

// Loshchilov and Hutter, "SGDR" (2017), eq. 5, with one period and a linear warm-up before it.
struct Schedule {
  double peak = 1e-3;
  double final_share = 0.1;  // of the peak, at the last step
  std::int64_t n_warmup = 0;
  std::int64_t n_steps = 0;

  // The rate at a step, numbered from 0. It is above zero at step 0.
  double rate(std::int64_t step) const {
    if (step < n_warmup)
      return peak * static_cast<double>(step + 1) / static_cast<double>(n_warmup);
    const double span = std::max<double>(1, static_cast<double>(n_steps - 1 - n_warmup));
    const double done = std::min(1.0, static_cast<double>(step - n_warmup) / span);
    const double share =
        final_share + (1 - final_share) * 0.5 * (1 + std::cos(std::numbers::pi * done));
    return peak * share;
  }
};

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_SCHEDULE_H_
