// SPDX-License-Identifier: Apache-2.0
// Exact match and F1 of short answers with SQuAD's normalisation (Rajpurkar, Zhang, Lopyrev, Liang,
// "SQuAD: 100,000+ questions for machine comprehension of text", EMNLP 2016, and the evaluation
// program of SQuAD 2.0; Rajpurkar, Jia, Liang, ACL 2018): lower case, no ASCII punctuation, no
// articles, single spaces. F1 counts words that answer and reference share. Each of the two is the
// best over the references; the corpus' scores are means over items.
#ifndef OUTRIDER_EVAL_METRICS_EXACT_MATCH_H_
#define OUTRIDER_EVAL_METRICS_EXACT_MATCH_H_

#include <string>
#include <string_view>
#include <vector>

#include "eval/metrics/metric.h"

namespace outrider::eval {

class ExactMatch : public Metric {
 public:
  // An answer that normalises to the same as `no_answer` counts as empty, which is correct for a
  // question without an answer. Empty: no such word.
  explicit ExactMatch(std::string_view no_answer = {});

  // Counts: exact match, F1, 1.
  std::string_view name() const override { return "squad"; }
  std::vector<std::string_view> score_names() const override { return {"exact_match", "f1"}; }
  std::size_t n_counts() const override { return 3; }
  std::vector<double> count(const Judged& judged) const override;
  std::vector<double> scores(std::span<const double> sums) const override;  // 0 to 100
  std::string signature(std::size_t n_references) const override;

 private:
  std::vector<std::u32string> no_answer_;
};

// The normalised words that are compared. Exposed for tests.
std::vector<std::u32string> normalize_answer(std::string_view answer);

}  // namespace outrider::eval

#endif  // OUTRIDER_EVAL_METRICS_EXACT_MATCH_H_
