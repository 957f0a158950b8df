// A sum of many doubles in an order of its own, the same on every machine: number i goes into lane
// i mod 8, and the lanes end in one tree. Eight chains of additions do not wait for one another, as
// a single one does at every step; and where i is a token's id, a sum over a support is the sum
// over the whole vocabulary, zeros being no matter.
#ifndef OUTRIDER_BASE_LANE_SUM_H_
#define OUTRIDER_BASE_LANE_SUM_H_

#include <array>
#include <cstddef>

namespace outrider {

class LaneSum {
 public:
  static constexpr std::size_t kLanes = 8;

  void add(std::size_t i, double value) { lanes_[i % kLanes] += value; }

  // Numbers 0..n-1, each asked for once, in this order.
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
