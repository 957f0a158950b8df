// SPDX-License-Identifier: Apache-2.0
// Perplexity: exp of the mean of -log prob over tokens.
#ifndef OUTRIDER_EVAL_METRICS_PERPLEXITY_H_
#define OUTRIDER_EVAL_METRICS_PERPLEXITY_H_

#include <string>
#include <string_view>
#include <vector>

#include "eval/metrics/metric.h"

namespace outrider::eval {

// bits_per_byte divides by the text's bytes instead of its tokens, so that models of different
// vocabularies can be compared.
class Perplexity : public Metric {
 public:
  // Counts: -log prob in nats, tokens, bytes.
  std::string_view name() const override { return "perplexity"; }
  std::vector<std::string_view> score_names() const override {
    return {"perplexity", "nll_per_token", "bits_per_byte"};
  }
  std::size_t n_counts() const override { return 3; }
  std::vector<double> count(const Judged& judged) const override;
  std::vector<double> scores(std::span<const double> sums) const override;
  std::string signature(std::size_t n_references) const override;
  bool larger_is_better() const override { return false; }
  bool needs_references() const override { return false; }
  bool needs_likelihood() const override { return true; }
};

}  // namespace outrider::eval

#endif  // OUTRIDER_EVAL_METRICS_PERPLEXITY_H_
