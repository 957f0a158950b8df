// SPDX-License-Identifier: Apache-2.0
// The progress of a training run: on a terminal one line that is redrawn, elsewhere a line at
// intervals.
#ifndef OUTRIDER_APPS_TRAINER_PROGRESS_LINE_H_
#define OUTRIDER_APPS_TRAINER_PROGRESS_LINE_H_

#include <chrono>
#include <string>

#include "train/training_run.h"

namespace outrider::cli {

// Writes to standard error. Not thread-safe.
class ProgressLine {
 public:
  ProgressLine();
  void show(const train::StepReport& report);
  void finish();  // keeps the last line on the screen

 private:
  using Clock = std::chrono::steady_clock;
  bool is_terminal_;
  bool drawn_ = false;
  Clock::time_point next_draw_;
  double smooth_loss_ = 0;
  double seconds_ = 0;  // of the steps shown, recent ones weighted most
  double tokens_ = 0;   // weighted in the same way
  double steps_ = 0;    // weighted in the same way
  double held_out_ = -1;
};

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_TRAINER_PROGRESS_LINE_H_
