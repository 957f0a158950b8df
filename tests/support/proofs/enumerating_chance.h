// SPDX-License-Identifier: Apache-2.0
// A Chance that enumerates every outcome of a random process, each with its probability.
//
// Every Draw key has one uniform number, as in the product's CounterChance. The enumerator stores
// only the interval in which the number lies. A decision splits the interval at its thresholds, and
// each part is one outcome. A second decision with the same key splits the remaining interval. Two
// decisions that wrongly share a key therefore appear as dependent.
#ifndef OUTRIDER_TESTS_SUPPORT_PROOFS_ENUMERATING_CHANCE_H_
#define OUTRIDER_TESTS_SUPPORT_PROOFS_ENUMERATING_CHANCE_H_

#include <algorithm>
#include <cstddef>
#include <map>
#include <tuple>
#include <vector>

#include "sampling/chance.h"

namespace outrider::test {

class EnumeratingChance final : public Chance {
 public:
  // Calls process() once for every path of outcomes; weight() is the probability of the path. Paths
  // are visited depth first: the choices of a path are a list, and the last choice with remaining
  // outcomes advances.
  template <class Process>
  void for_each_path(Process&& process) {
    script_.clear();
    do {
      depth_ = 0;
      weight_ = 1;
      intervals_.clear();
      process();
      while (!script_.empty() && script_.back().taken + 1 == script_.back().n_outcomes) {
        script_.pop_back();
      }
      if (!script_.empty()) ++script_.back().taken;
    } while (!script_.empty());
  }

  double weight() const { return weight_; }

  bool bernoulli(double prob, const Draw& draw) override {
    thresholds_.assign({0.0, std::clamp(prob, 0.0, 1.0), 1.0});
    return decide(draw) == 0;
  }

  TokenId categorical(const Distribution& distribution, const Draw& draw) override {
    thresholds_.assign(1, 0.0);
    for (const double prob : distribution.probs) {
      thresholds_.push_back(std::min(1.0, thresholds_.back() + prob));
    }
    thresholds_.back() = 1.0;
    return distribution.ids[decide(draw)];
  }

 private:
  struct Choice {
    std::size_t taken = 0;
    std::size_t n_outcomes = 0;
  };
  struct Interval {
    double low = 0;
    double high = 1;
  };
  // Outcomes less likely than this are rounding errors.
  static constexpr double kSliver = 1e-14;

  std::size_t decide(const Draw& draw) {
    Interval& known = intervals_[{draw.position, draw.node, draw.purpose}];
    const double width = known.high - known.low;
    feasible_.clear();
    for (std::size_t outcome = 0; outcome + 1 < thresholds_.size(); ++outcome) {
      const double low = std::max(known.low, thresholds_[outcome]);
      const double high = std::min(known.high, thresholds_[outcome + 1]);
      if (high - low > kSliver * width) feasible_.push_back(outcome);
    }
    if (depth_ == script_.size()) script_.push_back({0, feasible_.size()});
    const std::size_t outcome = feasible_[script_[depth_++].taken];
    known = {std::max(known.low, thresholds_[outcome]),
             std::min(known.high, thresholds_[outcome + 1])};
    weight_ *= (known.high - known.low) / width;
    return outcome;
  }

  std::vector<Choice> script_;
  std::size_t depth_ = 0;
  double weight_ = 1;
  std::map<std::tuple<std::int64_t, int, Purpose>, Interval> intervals_;
  std::vector<double> thresholds_;
  std::vector<std::size_t> feasible_;
};

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_PROOFS_ENUMERATING_CHANCE_H_
