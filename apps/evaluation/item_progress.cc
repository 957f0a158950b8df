// SPDX-License-Identifier: Apache-2.0
#include "apps/evaluation/item_progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "apps/cli/clock_text.h"
#include "apps/cli/entry.h"
#include "apps/cli/state_line.h"
#include "apps/cli/terminal.h"
#include "apps/commands.h"

namespace outrider::cli {
ItemProgress::ItemProgress(int n_items, int n_before)
    : n_items_(n_items),
      n_before_(n_before),
      n_done_(n_before),
      is_terminal_(is_terminal(STDERR_FILENO)),
      started_(Clock::now()),
      next_draw_(started_) {
  draw();
}

ItemProgress::~ItemProgress() { clear(); }

void ItemProgress::step(std::string_view remark) {
  ++n_done_;
  remark_ = one_line(remark);
  if (Clock::now() >= next_draw_) draw();
}

void ItemProgress::complain(std::string_view problem) {
  clear();
  fail(kExitError, problem);
  draw();
}

void ItemProgress::draw() {
  if (!is_terminal_ || n_items_ == 0) return;
  std::string left;
  if (n_done_ > n_before_) {
    const double seconds = std::chrono::duration<double>(Clock::now() - started_).count();
    left =
        fmt::format("  {} left", clock_of(seconds / (n_done_ - n_before_) * (n_items_ - n_done_)));
  }
  fmt::print(stderr, "\r\x1b[K{} {}/{}{}{}{}", bar_of(double(n_done_) / n_items_), n_done_,
             n_items_, left, remark_.empty() ? "" : "  ", remark_);
  std::fflush(stderr);
  drawn_ = true;
  next_draw_ = Clock::now() + kBetweenPictures;
}

void ItemProgress::clear() {
  if (drawn_) std::fputs("\r\x1b[K", stderr);
  drawn_ = false;
}

}  // namespace outrider::cli
