// SPDX-License-Identifier: Apache-2.0
// A progress bar on standard error for a sequence of items.
#ifndef OUTRIDER_APPS_EVALUATION_ITEM_PROGRESS_H_
#define OUTRIDER_APPS_EVALUATION_ITEM_PROGRESS_H_

#include <chrono>
#include <string>
#include <string_view>

namespace outrider::cli {

// Shown only on a terminal, with the remaining time estimated from the items so far. The destructor
// clears it. Not thread-safe.
class ItemProgress {
 public:
  // n_before: items done by an earlier run; they do not count in the time estimate.
  ItemProgress(int n_items, int n_before);
  ~ItemProgress();
  ItemProgress(const ItemProgress&) = delete;
  ItemProgress& operator=(const ItemProgress&) = delete;

  // Counts one more item as done.
  void step(std::string_view remark = {});
  // Prints a problem on its own line above the bar.
  void complain(std::string_view problem);

 private:
  using Clock = std::chrono::steady_clock;
  void draw();
  void clear();

  int n_items_;
  int n_before_;
  int n_done_;
  std::string remark_;
  bool is_terminal_;
  bool drawn_ = false;
  Clock::time_point started_;
  Clock::time_point next_draw_;
};

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_EVALUATION_ITEM_PROGRESS_H_
