// SPDX-License-Identifier: Apache-2.0
// BLEU (Papineni, Roukos, Ward, Zhu, "BLEU: a method for automatic evaluation of machine
// translation", ACL 2002), with the choices that sacreBLEU makes by default (Post, "A call for
// clarity in reporting BLEU scores", WMT 2018): mteval's 13a tokenisation, case kept, n-grams up to
// four, the closest reference's length, exponential smoothing of orders without a match.
#ifndef OUTRIDER_EVAL_METRICS_BLEU_H_
#define OUTRIDER_EVAL_METRICS_BLEU_H_

#include <string>
#include <string_view>
#include <vector>

#include "eval/metrics/metric.h"

namespace outrider::eval {

class Bleu : public Metric {
 public:
  // Counts: matches of orders 1 to 4, n-grams of the text of orders 1 to 4, its length, the closest
  // reference's length (words).
  std::string_view name() const override { return "bleu"; }
  std::vector<std::string_view> score_names() const override { return {"bleu"}; }
  std::size_t n_counts() const override { return 10; }
  std::vector<double> count(const Judged& judged) const override;
  std::vector<double> scores(std::span<const double> sums) const override;  // 0 to 100
  std::string signature(std::size_t n_references) const override;
};

// The words that BLEU compares. Public for tests.
std::vector<std::u32string> tokenize_13a(std::string_view text);

}  // namespace outrider::eval

#endif  // OUTRIDER_EVAL_METRICS_BLEU_H_
