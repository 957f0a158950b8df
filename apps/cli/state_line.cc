// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/state_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "apps/cli/terminal.h"

namespace outrider::cli {

std::string bar_of(double share) {
  constexpr int kCells = 24;
  const int filled = static_cast<int>(share * kCells);
  return fmt::format("[{:=<{}}{:{}}]", "", filled, "", kCells - filled);
}

StateLine::StateLine() : is_terminal_(is_terminal(STDERR_FILENO)) {}

StateLine::~StateLine() {
  if (drawn_) std::fputs("\r\x1b[K", stderr);
}

void StateLine::show(std::string_view state) {
  if (!is_terminal_) return;
  fmt::print(stderr, "\r\x1b[K{}", one_line(state));
  std::fflush(stderr);
  drawn_ = true;
}

}  // namespace outrider::cli
