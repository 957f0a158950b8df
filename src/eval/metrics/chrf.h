// SPDX-License-Identifier: Apache-2.0
// chrF (Popović, "chrF: character n-gram F-score for automatic MT evaluation", WMT 2015) as
// sacreBLEU computes it by default: characters without white space, n-grams up to six, no words,
// recall weighing twice precision (beta 2).
#ifndef OUTRIDER_EVAL_METRICS_CHRF_H_
#define OUTRIDER_EVAL_METRICS_CHRF_H_

#include <string>
#include <string_view>
#include <vector>

#include "eval/metrics/metric.h"

namespace outrider::eval {

class Chrf : public Metric {
 public:
  // Counts: for each order the n-grams of the text, of the reference, and those in both. Of several
  // references, the one with the best score for this item is used.
  std::string_view name() const override { return "chrf"; }
  std::vector<std::string_view> score_names() const override { return {"chrf"}; }
  std::size_t n_counts() const override { return 18; }
  std::vector<double> count(const Judged& judged) const override;
  std::vector<double> scores(std::span<const double> sums) const override;  // 0 to 100
  std::string signature(std::size_t n_references) const override;
};

}  // namespace outrider::eval

#endif  // OUTRIDER_EVAL_METRICS_CHRF_H_
