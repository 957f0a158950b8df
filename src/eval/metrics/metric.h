// SPDX-License-Identifier: Apache-2.0
// The interface of metrics: a score of many items that is a function of sums over them.
#ifndef OUTRIDER_EVAL_METRICS_METRIC_H_
#define OUTRIDER_EVAL_METRICS_METRIC_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace outrider::eval {

struct Item;

// A model's likelihood of a text.
struct TextLikelihood {
  double nll = 0;             // sum over the scored tokens of -log prob, nats
  std::int64_t n_tokens = 0;  // scored
  std::int64_t n_bytes = 0;   // of the text
};

// One item with everything that may be judged. Spans are valid during the call only.
struct Judged {
  const Item& item;
  std::span<const std::string> texts;  // generated, one per sample; at least one, or likelihood
  std::span<const std::string> references;     // correct answers, as alternatives
  const TextLikelihood* likelihood = nullptr;  // for metrics of likelihood
};

// Corpus BLEU is not a mean of sentence scores, but a function of n-gram counts summed over
// sentences. The same holds for every metric here, with its own counts. This makes records
// resumable (a record keeps its counts) and resampling cheap (a resample sums them). Stateless once
// made; thread-safe unless a metric says otherwise.
class Metric {
 public:
  virtual ~Metric() = default;

  virtual std::string_view name() const = 0;
  // The names of scores(), in order. The first is the headline score.
  virtual std::vector<std::string_view> score_names() const = 0;
  // The number of values from count().
  virtual std::size_t n_counts() const = 0;
  // Throws Error if this item cannot be judged.
  virtual std::vector<double> count(const Judged& judged) const = 0;
  // From counts summed over at least one item. An undefined score (for example without tokens) is
  // NaN.
  virtual std::vector<double> scores(std::span<const double> sums) const = 0;
  // Everything needed to compare the score with one from elsewhere.
  virtual std::string signature(std::size_t n_references) const = 0;

  // The minimum number of texts that count() needs for each item.
  virtual int n_samples() const { return 1; }
  virtual bool larger_is_better() const { return true; }
  virtual bool needs_references() const { return true; }
  // Judges a text's likelihood; nothing is generated.
  virtual bool needs_likelihood() const { return false; }
};

}  // namespace outrider::eval

#endif  // OUTRIDER_EVAL_METRICS_METRIC_H_
