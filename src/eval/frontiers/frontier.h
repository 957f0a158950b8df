// SPDX-License-Identifier: Apache-2.0
// Quality against cost, setting by setting: measures a rule from a set of answers, each compared
// with plain decoding's answer to the same question.
#ifndef OUTRIDER_EVAL_FRONTIERS_FRONTIER_H_
#define OUTRIDER_EVAL_FRONTIERS_FRONTIER_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "eval/frontiers/frontier_plot.h"
#include "eval/frontiers/rule_grid.h"
#include "eval/metrics/metric.h"
#include "eval/record.h"
#include "outrider/sampling.h"

namespace outrider::eval {

// The setting of one point's answers.
struct FrontierSetting {
  RuleSetting rule;  // of speculation; or a sequential cascade, with its spec in rule.rule
  bool sequential = false;
  int length = 0;  // of drafts; 0 for a sequential cascade
  SamplingParams sampling = {};
};

// The answers to one question.
struct FrontierItem {
  Record answer;      // in the setting
  Record plain;       // by the target alone, with the same transform and seed
  bool timed = true;  // both were made in sequence, so their times can be compared
};

// The paper's axes (Narasimhan et al. 2024, figures 1 to 3), and two further ones.
struct FrontierPoint {
  FrontierSetting setting;
  std::string slice;  // empty: all items
  int n_items = 0;
  int n_timed = 0;       // of these, the ones used for latency
  Figure quality;        // the metric's headline score
  Figure plain_quality;  // of the target alone
  // The median over timed items of (seconds per token) / (plain decoding's seconds per token,
  // measured right after), without prompts. So the load of a busy machine affects both alike. NaN
  // without timed items in which both wrote something.
  Figure latency;
  Figure passes;     // of the target, per token; plain decoding needs 1
  Figure rejection;  // share of judged drafted tokens that were rejected; NaN without any
  Figure deferral;   // as `deferral_rate` of a text
  // Multiplications of rows with weights per token, relative to plain decoding: (target rows *
  // target's parameters + drafter passes * drafter's) / (tokens * target's). A target's rows are
  // those of all roots and drafted tokens. NaN for sequential cascades.
  Figure compute;
};

// Sizes, for `compute`.
struct PairSize {
  std::int64_t target_parameters = 0;
  std::int64_t drafter_parameters = 0;
};

// The point of all items and, if items have slices, one for each slice, by name. Items need the
// metric's counts. 95% intervals over items (sampling/bootstrap.h), with the same resamples for
// every setting. items must not be empty.
std::vector<FrontierPoint> measure_points(const FrontierSetting& setting,
                                          std::span<const FrontierItem> items, const Metric& metric,
                                          const PairSize& size);

// The horizontal axis for "as fast as the target".
enum class Cost { latency, passes };
const Figure& cost_of(const FrontierPoint& point, Cost cost);

// A row of the paper's table 2: one family of rules with one transform, over all of its values and
// lengths of drafts. Points are measured ones, without interpolation. The interval of the best of
// many points is too narrow, because of that choice.
struct FrontierRow {
  std::string family;
  SamplingParams sampling;
  std::string slice;
  double plain_quality = 0;
  // The least cost at a quality not below the target's; and the best quality at a cost not above
  // plain decoding's. Empty if there is no such point.
  std::optional<FrontierPoint> fastest_as_good;
  std::optional<FrontierPoint> best_as_fast;
};
std::vector<FrontierRow> frontier_rows(std::span<const FrontierPoint> points, Cost cost,
                                       bool larger_is_better);

}  // namespace outrider::eval

#endif  // OUTRIDER_EVAL_FRONTIERS_FRONTIER_H_
