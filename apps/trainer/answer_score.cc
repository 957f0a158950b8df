// SPDX-License-Identifier: Apache-2.0
#include "apps/trainer/answer_score.h"

#include <vector>

#include "eval/metrics/bleu.h"
#include "eval/tasks/item.h"

namespace outrider::cli {

AnswerScore score_answers(std::span<const std::string> answers,
                          std::span<const std::string> references) {
  const eval::Bleu metric;
  const eval::Item item;  // BLEU needs only texts
  std::vector<double> counts;
  std::vector<double> sums(metric.n_counts(), 0.0);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const std::vector<double> counted = metric.count(
        {.item = item, .texts = answers.subspan(i, 1), .references = references.subspan(i, 1)});
    for (std::size_t c = 0; c < counted.size(); ++c) sums[c] += counted[c];
    counts.insert(counts.end(), counted.begin(), counted.end());
  }
  const auto scores = [&metric](std::span<const double> of) { return metric.scores(of); };
  return {.bleu = scores(sums).front(),
          .interval = bootstrap_intervals(counts, metric.n_counts(), scores).front(),
          .signature = metric.signature(1)};
}

}  // namespace outrider::cli
