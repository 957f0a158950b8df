// SPDX-License-Identifier: Apache-2.0
#include "engine/drafting/pass_times.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "model/any_encoder_tokens.h"
#include "model/prefill.h"

namespace outrider {
namespace {

// The shares of a pass' deviation by which all costs change, and by which its own does. A change of
// load shows after some ten passes in all costs, also of widths that are not run meanwhile.
constexpr double kAllFollow = 0.1;
constexpr double kOneFollows = 0.02;
// The share for a width that was not run for kLongAgo passes: these have scaled all costs already.
constexpr std::int64_t kLongAgo = 16;
constexpr double kStaleFollows = 0.3;
// After this number of passes of one width in a row, deviations count as drift of all costs. A
// disturbance lasts longer.
constexpr std::int64_t kFewInTurn = 4;
// An outlier counts at most kOutlier times the expected time. If other programs run, passes that
// wait for a thread are frequent and belong to the mean; a pass during which the machine slept does
// not.
constexpr double kOutlier = 4;

// Widths that are distinguished; a pass between them counts for the nearest one below.
constexpr int kRows[] = {1,  2,  3,  4,  5,  6,  7,  8,   10,  12,  14,  16,  20,  24, 28,
                         32, 40, 48, 56, 64, 80, 96, 128, 160, 192, 256, 320, 384, 512};

int nearest(int rows) {
  const auto* const above = std::upper_bound(std::begin(kRows), std::end(kRows), rows);
  return above == std::begin(kRows) ? kRows[0] : *(above - 1);
}

}  // namespace

PassTimes::PassTimes(std::vector<Measured> measured) : points_(std::move(measured)) { rise(); }

void PassTimes::rise() {
  rising_.resize(points_.size());
  double most = 0;
  for (std::size_t i = 0; i < points_.size(); ++i) {
    most = std::max(most, points_[i].seconds);
    rising_[i] = most;
  }
}

double PassTimes::base(int rows) const {
  const auto above = std::lower_bound(points_.begin(), points_.end(), rows,
                                      [](const Measured& point, int n) { return point.rows < n; });
  const auto at = static_cast<std::size_t>(above - points_.begin());
  if (above == points_.end()) {
    if (points_.size() == 1) return rising_[0];
    const double a_row =
        (rising_[at - 1] - rising_[at - 2]) / (points_[at - 1].rows - points_[at - 2].rows);
    return rising_[at - 1] + a_row * (rows - points_[at - 1].rows);
  }
  // Narrower than any width seen: not cheaper.
  if (above->rows == rows || at == 0) return rising_[at];
  const Measured& below = points_[at - 1];
  const double share = static_cast<double>(rows - below.rows) / (above->rows - below.rows);
  return rising_[at - 1] + share * (rising_[at] - rising_[at - 1]);
}

double PassTimes::seconds(int rows) const {
  return rows <= 0 || points_.empty() ? 0 : scale_ * base(rows);
}

std::vector<PassTimes::Measured> PassTimes::points() const {
  std::vector<Measured> points = points_;
  for (Measured& point : points) point.seconds *= scale_;
  return points;
}

void PassTimes::add(int rows, double seconds) {
  if (rows <= 0 || !(seconds > 0)) return;
  learn(nearest(rows), seconds, this->seconds(rows));
  rise();
}

void PassTimes::learn(int rows, double seconds, double expected) {
  ++n_passes_;
  n_in_turn_ = std::exchange(last_rows_, rows) == rows ? n_in_turn_ + 1 : 1;
  const auto point = std::lower_bound(points_.begin(), points_.end(), rows,
                                      [](const Measured& one, int n) { return one.rows < n; });
  if (expected <= 0) {
    points_.insert(point, {rows, seconds, n_passes_});
    return;
  }
  const double ratio = std::clamp(seconds / expected, 1 / kOutlier, kOutlier);
  // No measurement of this width yet: leaves the others unchanged.
  if (point == points_.end() || point->rows != rows) {
    points_.insert(point, {rows, ratio * base(rows), n_passes_});
    return;
  }
  const bool is_stale = n_passes_ - std::exchange(point->last_pass, n_passes_) > kLongAgo;
  if (is_stale) {
    point->seconds *= 1 + kStaleFollows * (std::clamp(ratio, 0.5, 2.0) - 1);
    return;
  }
  scale_ *= 1 + kAllFollow * (ratio - 1);
  if (n_in_turn_ <= kFewInTurn) point->seconds *= 1 + kOneFollows * (ratio - 1);
}

PassTimes measure_passes(LanguageModel& model) {
  using Clock = std::chrono::steady_clock;
  // A context that attention can read.
  constexpr int kContext = 32;
  constexpr int kWidest = 64;
  // A large model is not measured for longer: wider passes are extrapolated by the last ones' cost
  // per row.
  constexpr double kLongest_seconds = 1;
  constexpr std::size_t kMaxTimes = 25;
  constexpr double kShort_seconds = 0.01;  // per width, for passes beyond two
  const auto seconds_since = [](Clock::time_point began) {
    return std::chrono::duration<double>(Clock::now() - began).count();
  };
  const int most = std::min(kWidest, model.config().context_length - kContext);
  std::vector<TokenId> tokens(static_cast<std::size_t>(kWidest));
  std::iota(tokens.begin(), tokens.end(), 0);
  for (TokenId& token : tokens) token %= model.config().vocabulary_size;
  ForwardOutput output;
  const std::vector<TokenId> encoder_tokens = any_encoder_tokens(model.config());
  const auto sequence =
      model.open({.encoder_tokens = encoder_tokens, .n_tokens = kContext + std::max(most, 0)});
  const auto began = Clock::now();
  std::vector<int> widths;
  std::vector<std::vector<double>> seconds;
  const auto fits = [&](int n_tokens) {
    const SequenceGrowth growth{.sequence = sequence.get(), .n_tokens = n_tokens};
    return model.fits({&growth, 1});
  };
  if (most < 1 || !fits(kContext + 1)) return {};
  prefill(model, *sequence, std::span(tokens).first(kContext), output);
  const auto time_pass = [&](int rows) {
    TokenBlock block;
    block.sequence = sequence.get();
    block.tokens = std::span(tokens).first(static_cast<std::size_t>(rows));
    const auto pass = Clock::now();
    model.forward({&block, 1}, {}, output);
    const double taken = seconds_since(pass);
    sequence->keep({});
    return taken;
  };
  for (int rows = 1; rows <= most && fits(rows); rows *= 2) {
    widths.push_back(rows);
    seconds.push_back({time_pass(rows), time_pass(rows)});
    if (rows > 1 && seconds_since(began) > kLongest_seconds) break;
  }
  // Short passes differ by some percent: measures more of them, in turn, since the machine's speed
  // drifts.
  for (std::size_t time = 2; time < kMaxTimes; ++time) {
    for (std::size_t i = 0; i < widths.size(); ++i) {
      const bool is_short = static_cast<double>(time) * seconds[i][0] < kShort_seconds;
      if (is_short) seconds[i].push_back(time_pass(widths[i]));
    }
  }
  std::vector<PassTimes::Measured> measured;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    const auto middle =
        seconds[i].begin() + static_cast<std::ptrdiff_t>((seconds[i].size() - 1) / 2);
    std::nth_element(seconds[i].begin(), middle, seconds[i].end());
    measured.push_back({widths[i], *middle});
  }
  return PassTimes(std::move(measured));
}

}  // namespace outrider
