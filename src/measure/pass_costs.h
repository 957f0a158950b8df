// SPDX-License-Identifier: Apache-2.0
// Computes the costs of passes from the samples of a measurement.
#ifndef OUTRIDER_MEASURE_PASS_COSTS_H_
#define OUTRIDER_MEASURE_PASS_COSTS_H_

#include <cstdint>
#include <vector>

#include "outrider/measure.h"

namespace outrider {

// One value a round, except the bandwidth, which is read before every width.
struct PassSamples {
  std::vector<int> rows;                     // ascending, 1 first
  std::vector<std::vector<double>> seconds;  // (rows, rounds)
  std::vector<double> experts = {};          // (rows): PassCost::experts; empty: no experts
  std::vector<double> bandwidth;             // bytes per second
  std::vector<double> one_stream;            // the same with one stream a thread
  int prefill_tokens = 0;
  std::vector<double> prefill_seconds;  // empty: not measured
};

// weight_bytes: what a pass over one row reads.
PassCosts summarise(const PassSamples& samples, std::int64_t weight_bytes);

}  // namespace outrider

#endif  // OUTRIDER_MEASURE_PASS_COSTS_H_
