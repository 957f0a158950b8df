// SPDX-License-Identifier: Apache-2.0
#include "apps/trainer/progress_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "apps/cli/clock_text.h"
#include "apps/cli/terminal.h"

namespace outrider::cli {
namespace {

// Ten updates per second look continuous; a log file gets a line now and then.
constexpr std::chrono::milliseconds kBetweenDraws{100};
constexpr std::chrono::seconds kBetweenLines{10};
constexpr int kCells = 24;
// The weight of the past in running means: about the last fifty steps count.
constexpr double kMemory = 0.98;

}  // namespace

ProgressLine::ProgressLine() : is_terminal_(is_terminal(STDERR_FILENO)), next_draw_(Clock::now()) {}

void ProgressLine::show(const train::StepReport& report) {
  seconds_ = kMemory * seconds_ + report.seconds;
  tokens_ = kMemory * tokens_ + static_cast<double>(report.n_tokens);
  steps_ = kMemory * steps_ + 1;
  smooth_loss_ += (report.loss - smooth_loss_) / std::min(steps_, 20.0);
  for (const auto& [name, value] : report.held_out) {
    if (name == "loss") held_out_ = value;
  }
  const bool last = report.step == report.n_steps;
  if (!last && Clock::now() < next_draw_) return;
  const double left = seconds_ / steps_ * static_cast<double>(report.n_steps - report.step);
  std::string line =
      fmt::format("step {}/{}  loss {:.4f}", report.step, report.n_steps, smooth_loss_);
  if (held_out_ >= 0) line += fmt::format("  held out {:.4f}", held_out_);
  line +=
      fmt::format("  {:.0f} tokens/s  {} left", tokens_ / std::max(seconds_, 1e-9), clock_of(left));
  if (is_terminal_) {
    const int filled =
        static_cast<int>(report.step * kCells / std::max<std::int64_t>(1, report.n_steps));
    fmt::print(stderr, "\r\x1b[K[{:=<{}}{:{}}] {}", "", filled, "", kCells - filled, line);
    drawn_ = true;
    next_draw_ = Clock::now() + kBetweenDraws;
  } else {
    fmt::print(stderr, "{}\n", line);
    next_draw_ = Clock::now() + kBetweenLines;
  }
  std::fflush(stderr);
}

void ProgressLine::finish() {
  if (drawn_) std::fputs("\n", stderr);
  drawn_ = false;
}

}  // namespace outrider::cli
