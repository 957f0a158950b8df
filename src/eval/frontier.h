// Quality against what it costs, setting by setting: what a set of answers, each beside plain
// decoding's to the same question, says of a rule.
#ifndef OUTRIDER_EVAL_FRONTIER_H_
#define OUTRIDER_EVAL_FRONTIER_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "eval/frontier_plot.h"
#include "eval/metric.h"
#include "eval/record.h"
#include "eval/rule_grid.h"
#include "outrider/sampling.h"

namespace outrider::eval {

// How answers of one point are made.
struct FrontierSetting {
  RuleSetting rule;  // of speculation; or a sequential cascade, rule.rule being its spec
  bool sequential = false;
  int length = 0;  // of drafts; 0 for a sequential cascade
  SamplingParams sampling = {};
};

// The answers to one question.
struct FrontierItem {
  Record answer;      // in the setting
  Record plain;       // by the target alone, with the same transform and seed
  bool timed = true;  // made one right after the other: their times can be compared
};

// The paper's axes (Narasimhan et al. 2024, figures 1 to 3), and two of ours.
struct FrontierPoint {
  FrontierSetting setting;
  std::string slice;  // empty: all items
  int n_items = 0;
  int n_timed = 0;       // of these, what latency is taken from
  Figure quality;        // the metric's headline score
  Figure plain_quality;  // of the target alone
  // The median over timed items of (seconds a token) / (plain decoding's seconds a token, taken
  // right after), prompts left out: what a busy machine does to both, it does to neither. NaN
  // without timed items in which both wrote something.
  Figure latency;
  Figure passes;     // of the target, a token; plain decoding takes 1
  Figure rejection;  // share of judged drafted tokens that were rejected; NaN without any
  Figure deferral;   // as `deferral_rate` of a text
  // Rows of weights times activations against plain decoding's, a token: (target rows * target's
  // parameters + drafter passes * drafter's) / (tokens * target's). A target's rows are those of
  // all roots and drafted tokens. NaN for sequential cascades.
  Figure compute;
};

// Sizes, for `compute`.
struct PairSize {
  std::int64_t target_parameters = 0;
  std::int64_t drafter_parameters = 0;
};

// The point of all items and, where items have slices, one for each of these, by name. Items need
// the metric's counts. 95% intervals over items (sampling/bootstrap.h), the same resamples for
// every setting. items must not be empty.
std::vector<FrontierPoint> measure_points(const FrontierSetting& setting,
                                          std::span<const FrontierItem> items, const Metric& metric,
                                          const PairSize& size);

// What is on the horizontal axis when "as fast as the target" is asked.
enum class Cost { latency, passes };
const Figure& cost_of(const FrontierPoint& point, Cost cost);

// A row of the paper's table 2: one family of rules behind one transform, over all of its values
// and lengths of drafts. Points are those that were measured: nothing is interpolated, and the
// intervals of a point chosen as the best of many are too narrow by that choice.
struct FrontierRow {
  std::string family;
  SamplingParams sampling;
  std::string slice;
  double plain_quality = 0;
  // The least cost at a quality not below the target's own; and the best quality at a cost not
  // above plain decoding's. Nothing where no point is.
  std::optional<FrontierPoint> fastest_as_good;
  std::optional<FrontierPoint> best_as_fast;
};
std::vector<FrontierRow> frontier_rows(std::span<const FrontierPoint> points, Cost cost,
                                       bool larger_is_better);

}  // namespace outrider::eval

#endif  // OUTRIDER_EVAL_FRONTIER_H_
