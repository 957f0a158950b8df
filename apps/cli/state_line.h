// SPDX-License-Identifier: Apache-2.0
// One line on standard error with the state of a long command.
#ifndef OUTRIDER_APPS_CLI_STATE_LINE_H_
#define OUTRIDER_APPS_CLI_STATE_LINE_H_

#include <chrono>
#include <string>
#include <string_view>

namespace outrider::cli {

// Ten updates a second look continuous.
inline constexpr std::chrono::milliseconds kBetweenPictures{100};

// A progress bar of constant width for a share of 0 to 1: "[=====     ]".
std::string bar_of(double share);

// Shown only on a terminal, so that scripts see only results and errors. Each state replaces the
// one before; the destructor clears the last.
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

#endif  // OUTRIDER_APPS_CLI_STATE_LINE_H_
