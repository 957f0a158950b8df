// SPDX-License-Identifier: Apache-2.0
// ROUGE-1, ROUGE-2 and ROUGE-L (Lin, "ROUGE: a package for automatic evaluation of summaries",
// 2004) as F-scores, computed as Google's rouge-score package does without a stemmer. Words are
// runs of a-z and 0-9 after lower case; ROUGE-L uses the longest common subsequence of the whole
// text. Each of an item's scores is the best over its references; the corpus' is the mean over
// items.
#ifndef OUTRIDER_EVAL_METRICS_ROUGE_H_
#define OUTRIDER_EVAL_METRICS_ROUGE_H_

#include <string>
#include <string_view>
#include <vector>

#include "eval/metrics/metric.h"

namespace outrider::eval {

class Rouge : public Metric {
 public:
  // Counts: the three F-scores, 1.
  std::string_view name() const override { return "rouge"; }
  std::vector<std::string_view> score_names() const override {
    return {"rouge1", "rouge2", "rougeL"};
  }
  std::size_t n_counts() const override { return 4; }
  std::vector<double> count(const Judged& judged) const override;
  std::vector<double> scores(std::span<const double> sums) const override;  // 0 to 100
  std::string signature(std::size_t n_references) const override;
};

}  // namespace outrider::eval

#endif  // OUTRIDER_EVAL_METRICS_ROUGE_H_
