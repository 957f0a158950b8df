// SPDX-License-Identifier: Apache-2.0
// Means over an evaluation of several batches.
#ifndef OUTRIDER_TRAIN_LOSSES_WEIGHTED_MEANS_H_
#define OUTRIDER_TRAIN_LOSSES_WEIGHTED_MEANS_H_

#include <string>
#include <vector>

#include "train/output/metric.h"

namespace outrider::train {

// Named values, each a weighted mean of all added means. Not thread-safe.
class WeightedMeans {
 public:
  // Adds a mean over rows whose weights sum to `weight`.
  void add(const std::string& name, double mean, double weight) {
    Sum* sum = nullptr;
    for (Sum& known : sums_) {
      if (known.name == name) sum = &known;
    }
    if (sum == nullptr) sum = &sums_.emplace_back(Sum{name, 0, 0});
    sum->value += mean * weight;
    sum->weight += weight;
  }

  // In the order in which the names were first added.
  std::vector<Metric> metrics() const {
    std::vector<Metric> all;
    for (const Sum& sum : sums_) {
      all.emplace_back(sum.name, sum.weight > 0 ? sum.value / sum.weight : 0);
    }
    return all;
  }

 private:
  struct Sum {
    std::string name;
    double value = 0;
    double weight = 0;
  };
  std::vector<Sum> sums_;
};

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_LOSSES_WEIGHTED_MEANS_H_
