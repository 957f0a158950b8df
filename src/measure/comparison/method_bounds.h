// SPDX-License-Identifier: Apache-2.0
// Upper bounds on the gain from drafting, by the costs of passes and drafts and by the accepted
// tokens.
//
// Costs are in plain passes: ĉ(n) is a pass of the target over n rows divided by one over one row,
// d̂ a drafted level. Verification and everything else is free in the bounds. Round r had a draft
// of n_r nodes of which a_r were accepted; it gave a_r + 1 tokens.
//
//   oracle length      sum_r (a_r + 1) / sum_r (ĉ(a_r + 1) + a_r d̂)
//   perfect drafter    max over L of (L + 1) / (ĉ(L + 1) + L d̂)
//   free drafting      sum_r (a_r + 1) / sum_r ĉ(n_r + 1)
#ifndef OUTRIDER_MEASURE_COMPARISON_METHOD_BOUNDS_H_
#define OUTRIDER_MEASURE_COMPARISON_METHOD_BOUNDS_H_

#include "engine/drafting/pass_times.h"
#include "outrider/compare_methods.h"
#include "outrider/measure.h"

namespace outrider {

// ĉ: costs in passes of one row, which is the first of these.
PassTimes relative_costs(const PassCosts& costs);

// Sums over rounds. The bounds are ratios of them, so resamples of prompts can be added up.
struct BoundSums {
  double tokens = 0;        // sum of a_r + 1
  double levels = 0;        // sum of a_r
  double oracle_cost = 0;   // sum of ĉ(a_r + 1)
  double drafted_cost = 0;  // sum of ĉ(n_r + 1)

  void add(const DraftOutcome& outcome, const PassTimes& costs);
  double oracle(double level_cost) const { return tokens / (oracle_cost + levels * level_cost); }
  double free() const { return tokens / drafted_cost; }
};

struct PerfectDraft {
  int length = 0;
  double speedup = 1;
};
// Over lengths whose passes are within the measured widths.
PerfectDraft perfect_draft(const PassTimes& costs, double level_cost);

}  // namespace outrider

#endif  // OUTRIDER_MEASURE_COMPARISON_METHOD_BOUNDS_H_
