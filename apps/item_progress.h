// A bar on standard error while items are worked through.
#ifndef OUTRIDER_APPS_ITEM_PROGRESS_H_
#define OUTRIDER_APPS_ITEM_PROGRESS_H_

#include <chrono>
#include <string>
#include <string_view>

namespace outrider::cli {

// Appears on a terminal only, with the time left as the items so far took; cleared when it goes.
// Not thread-safe.
class ItemProgress {
 public:
  // n_before: items done by an earlier run, which took none of this one's time.
  ItemProgress(int n_items, int n_before);
  ~ItemProgress();
  ItemProgress(const ItemProgress&) = delete;
  ItemProgress& operator=(const ItemProgress&) = delete;

  // One more item has been dealt with.
  void step(std::string_view remark = {});
  // A problem, as a line of its own above the bar.
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

#endif  // OUTRIDER_APPS_ITEM_PROGRESS_H_
