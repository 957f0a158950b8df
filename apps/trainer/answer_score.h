// SPDX-License-Identifier: Apache-2.0
// Scores the answers of a model in training to a file of texts: corpus BLEU against a file of
// references.
#ifndef OUTRIDER_APPS_TRAINER_ANSWER_SCORE_H_
#define OUTRIDER_APPS_TRAINER_ANSWER_SCORE_H_

#include <span>
#include <string>

#include "sampling/bootstrap.h"

namespace outrider::cli {

struct AnswerScore {
  double bleu = 0;  // 0 to 100
  Interval interval;
  std::string signature;  // the metric's options, in sacreBLEU's notation
};

// For at least one answer, with one reference each (eval/metrics/bleu.h). The 95% interval comes
// from resampling the texts (sampling/bootstrap.h). Thread-safe.
AnswerScore score_answers(std::span<const std::string> answers,
                          std::span<const std::string> references);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_TRAINER_ANSWER_SCORE_H_
