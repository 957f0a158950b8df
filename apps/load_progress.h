// SPDX-License-Identifier: Apache-2.0
// A progress bar on standard error for loading a model or another long step.
#ifndef OUTRIDER_APPS_LOAD_PROGRESS_H_
#define OUTRIDER_APPS_LOAD_PROGRESS_H_

#include <chrono>
#include <string>

#include "apps/cli/interrupt.h"

namespace outrider::cli {

// Shown only on a terminal, and only if loading takes a noticeable time. Shows the remaining time
// once it can be estimated. The destructor clears the bar. Ctrl-C ends the load at the next step.
class LoadProgress {
 public:
  LoadProgress(std::string what, const Interrupt& interrupt);
  ~LoadProgress();
  LoadProgress(const LoadProgress&) = delete;
  LoadProgress& operator=(const LoadProgress&) = delete;

  // For ModelOptions::progress. Throws Interrupted.
  void show(double share_done);

 private:
  using Clock = std::chrono::steady_clock;
  std::string what_;
  const Interrupt* interrupt_;
  bool is_terminal_;
  bool drawn_ = false;
  Clock::time_point begin_;
  Clock::time_point next_draw_;
};

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_LOAD_PROGRESS_H_
