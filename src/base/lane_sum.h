// SPDX-License-Identifier: Apache-2.0
// A sum of many doubles in a fixed order, the same on every machine: number i is added to lane i
// mod 8, and one tree adds the lanes. The eight chains of additions are independent, so their
// latencies overlap. If i is a token's id, a sum over a support equals the sum over the whole
// vocabulary, since zeros do not matter.
#ifndef OUTRIDER_BASE_LANE_SUM_H_
#define OUTRIDER_BASE_LANE_SUM_H_

#include <array>
#include <cstddef>

namespace outrider {

class LaneSum {
 public:
  static constexpr std::size_t kLanes = 8;

  void add(std::size_t i, double value) { lanes_[i % kLanes] += value; }

  // Adds numbers 0..n-1; calls value once for each, in this order.
  template <class Value>
  void add_each(std::size_t n, const Value& value) {
    std::array<double, kLanes> lanes = lanes_;  // in registers, whatever `value` writes
    std::size_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      for (std::size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += value(i + lane);
    }
    for (; i < n; ++i) lanes[i % kLanes] += value(i);
    lanes_ = lanes;
  }

  double total() const {
    return ((lanes_[0] + lanes_[4]) + (lanes_[2] + lanes_[6])) +
           ((lanes_[1] + lanes_[5]) + (lanes_[3] + lanes_[7]));
  }

 private:
  std::array<double, kLanes> lanes_ = {};
};

}  // namespace outrider

#endif  // OUTRIDER_BASE_LANE_SUM_H_
