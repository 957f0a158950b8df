// A bar on standard error while a model loads or something else takes its time.
#ifndef OUTRIDER_APPS_LOAD_PROGRESS_H_
#define OUTRIDER_APPS_LOAD_PROGRESS_H_

#include <chrono>
#include <string>

#include "interrupt.h"

namespace outrider::cli {

// Appears only on a terminal, and only if loading takes long enough to be noticed; cleared when it
// goes. Says how long it will take once that can be told. Ctrl-C ends the load at the next step.
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
