// SPDX-License-Identifier: Apache-2.0
// Whether an answer ends in the correct number, as for GSM8K and similar tasks (Cobbe et al.,
// "Training verifiers to solve math word problems", 2021).
#ifndef OUTRIDER_EVAL_METRICS_NUMERIC_ANSWER_H_
#define OUTRIDER_EVAL_METRICS_NUMERIC_ANSWER_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "eval/metrics/metric.h"

namespace outrider::eval {

class NumericAnswer : public Metric {
 public:
  // Counts: 1 if the number equals a reference's, 1. Any of several references counts.
  std::string_view name() const override { return "numeric"; }
  std::vector<std::string_view> score_names() const override { return {"accuracy"}; }
  std::size_t n_counts() const override { return 2; }
  // Throws Error if a reference has no number.
  std::vector<double> count(const Judged& judged) const override;
  std::vector<double> scores(std::span<const double> sums) const override;  // 0 to 100
  std::string signature(std::size_t n_references) const override;
};

// The final number of a worked answer: the first after the last "####" if there is one, else the
// last in the text. In decimal digits, without thousands separators, leading or trailing zeros:
// "-1,250.50" gives "-1250.5". Empty if there is no number.
std::optional<std::string> final_number(std::string_view text);

}  // namespace outrider::eval

#endif  // OUTRIDER_EVAL_METRICS_NUMERIC_ANSWER_H_
