// SPDX-License-Identifier: Apache-2.0
// The progress of a measurement, on standard error.
#ifndef OUTRIDER_APPS_BENCH_BENCH_PROGRESS_H_
#define OUTRIDER_APPS_BENCH_BENCH_PROGRESS_H_

#include <chrono>
#include <string>
#include <string_view>

#include "apps/cli/interrupt.h"
#include "apps/cli/state_line.h"

namespace outrider::cli {

// A bar on a terminal. It is drawn between timed steps, and within a long step rarely enough not to
// affect its time.
class BenchProgress {
 public:
  explicit BenchProgress(const Interrupt& interrupt) : interrupt_(&interrupt) {}

  // For MeasureProgress. Throws Interrupted.
  void show(std::string_view step, double share_done);

 private:
  using Clock = std::chrono::steady_clock;
  const Interrupt* interrupt_;
  StateLine line_;
  std::string step_;
  Clock::time_point next_draw_;
};

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_BENCH_BENCH_PROGRESS_H_
