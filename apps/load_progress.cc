// SPDX-License-Identifier: Apache-2.0
#include "apps/load_progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "apps/cli/state_line.h"
#include "apps/cli/terminal.h"

namespace outrider::cli {
namespace {

// A bar shown for less than half a second would only flicker.
constexpr std::chrono::milliseconds kPatience{500};
// Earlier, the finished share does not predict the rest.
constexpr std::chrono::seconds kBeforeForecast{3};

// "about 40 s left", if the rest takes as long in proportion.
std::string time_left(double seconds, double share) {
  const double left = seconds * (1 - share) / share;
  if (left < 100) return fmt::format(", about {:.0f} s left", left);
  if (left < 100 * 60) return fmt::format(", about {:.0f} min left", left / 60);
  return fmt::format(", about {:.0f} h left", left / 3600);
}

}  // namespace

LoadProgress::LoadProgress(std::string what, const Interrupt& interrupt)
    : what_(std::move(what)),
      interrupt_(&interrupt),
      is_terminal_(is_terminal(STDERR_FILENO)),
      begin_(Clock::now()),
      next_draw_(begin_ + kPatience) {}

LoadProgress::~LoadProgress() {
  if (drawn_) std::fputs("\r\x1b[K", stderr);
}

void LoadProgress::show(double share_done) {
  interrupt_->throw_if_raised();
  if (!is_terminal_ || Clock::now() < next_draw_) return;
  next_draw_ = Clock::now() + kBetweenPictures;
  const double share = std::clamp(share_done, 0.0, 1.0);
  const std::chrono::duration<double> elapsed = Clock::now() - begin_;
  fmt::print(stderr, "\r\x1b[K{} {} {:3.0f}%{}", what_, bar_of(share), share * 100,
             elapsed > kBeforeForecast && share > 0 ? time_left(elapsed.count(), share) : "");
  std::fflush(stderr);
  drawn_ = true;
}

}  // namespace outrider::cli
