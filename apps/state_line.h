// One line on standard error that says what a long command is at.
#ifndef OUTRIDER_APPS_STATE_LINE_H_
#define OUTRIDER_APPS_STATE_LINE_H_

#include <chrono>
#include <string>
#include <string_view>

namespace outrider::cli {

// Ten pictures a second look continuous.
inline constexpr std::chrono::milliseconds kBetweenPictures{100};

// What is done, a share of 0 to 1, as a picture: "[=====     ]", of always one width.
std::string bar_of(double share);

// Appears only on a terminal, so that scripts see results and errors alone; each state replaces the
// one before, and the last is cleared when the object goes.
class StateLine {
 public:
  StateLine();
  ~StateLine();
  StateLine(const StateLine&) = delete;
  StateLine& operator=(const StateLine&) = delete;

  void show(std::string_view state);

 private:
  bool is_terminal_;
  bool drawn_ = false;
};

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_STATE_LINE_H_
