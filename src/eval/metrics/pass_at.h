// SPDX-License-Identifier: Apache-2.0
// pass@k: how often a program is correct within k attempts (Chen et al., "Evaluating large language
// models trained on code", 2021, section 2.1).
#ifndef OUTRIDER_EVAL_METRICS_PASS_AT_H_
#define OUTRIDER_EVAL_METRICS_PASS_AT_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "eval/metrics/metric.h"
#include "eval/tasks/item.h"
#include "eval/tasks/python_runner.h"

namespace outrider::eval {

// The probability that k out of n attempts, drawn without replacement, include at least one of the
// c correct ones: 1 - C(n - c, k) / C(n, k), the unbiased estimate of pass@k. 1 <= k <= n.
double pass_at_k(int n, int c, int k);

// The program in a model's answer: the contents of its first fenced block (``` to ``` or the end),
// or the whole answer without one. An unmatched fence without a language, after text, ends a block
// that the prompt began: then the text before it.
std::string_view code_of(std::string_view answer);

// Runs programs, which takes time; not thread-safe.
class PassAt : public Metric {
 public:
  // `program` has the fields of the item and {completion}, a generated text. 1 <= k.
  PassAt(int k, Template program, std::shared_ptr<const PythonRunner> runner);

  // Counts: the item's estimate, 1. Throws Error if there are fewer than k texts.
  std::string_view name() const override { return name_; }
  std::vector<std::string_view> score_names() const override { return {name_}; }
  std::size_t n_counts() const override { return 2; }
  std::vector<double> count(const Judged& judged) const override;
  std::vector<double> scores(std::span<const double> sums) const override;  // 0 to 100
  std::string signature(std::size_t n_references) const override;
  int n_samples() const override { return k_; }
  bool needs_references() const override { return false; }

 private:
  int k_;
  std::string name_;
  Template program_;
  std::shared_ptr<const PythonRunner> runner_;
};

}  // namespace outrider::eval

#endif  // OUTRIDER_EVAL_METRICS_PASS_AT_H_
