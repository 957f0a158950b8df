#include "bench_progress.h"

#include <fmt/format.h>

#include <algorithm>

namespace outrider::cli {
namespace {

constexpr std::chrono::seconds kBetweenDraws{1};
constexpr int kCells = 24;

}  // namespace

void BenchProgress::show(std::string_view step, double share_done) {
  interrupt_->throw_if_raised();
  if (step == step_ && Clock::now() < next_draw_) return;
  step_ = step;
  next_draw_ = Clock::now() + kBetweenDraws;
  const double share = std::clamp(share_done, 0.0, 1.0);
  const int filled = static_cast<int>(share * kCells);
  line_.show(fmt::format("[{:=<{}}{:{}}] {:3.0f}%  {}", "", filled, "", kCells - filled,
                         share * 100, step));
}

}  // namespace outrider::cli
