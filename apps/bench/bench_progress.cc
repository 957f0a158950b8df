// SPDX-License-Identifier: Apache-2.0
#include "apps/bench/bench_progress.h"

#include <fmt/format.h>

#include <algorithm>

namespace outrider::cli {
namespace {

// Rare, so that updates do not disturb the measurement.
constexpr std::chrono::seconds kBetweenShares{1};

}  // namespace

void BenchProgress::show(std::string_view step, double share_done) {
  interrupt_->throw_if_raised();
  if (step == step_ && Clock::now() < next_draw_) return;
  step_ = step;
  next_draw_ = Clock::now() + kBetweenShares;
  const double share = std::clamp(share_done, 0.0, 1.0);
  line_.show(fmt::format("{} {:3.0f}%  {}", bar_of(share), share * 100, step));
}

}  // namespace outrider::cli
