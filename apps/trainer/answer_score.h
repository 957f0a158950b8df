// How well a model in training answers a file of texts: corpus BLEU against another file.
#ifndef OUTRIDER_APPS_TRAINER_ANSWER_SCORE_H_
#define OUTRIDER_APPS_TRAINER_ANSWER_SCORE_H_

#include <span>
#include <string>

#include "sampling/bootstrap.h"

namespace outrider::cli {

struct AnswerScore {
  double bleu = 0;  // 0 to 100
  Interval interval;
  std::string signature;  // the choices behind the number, as sacreBLEU writes them
};

// Of at least one answer, with a reference each (eval/metrics/bleu.h); the 95% interval is of the
// texts, by resampling them (sampling/bootstrap.h). Thread-safe.
AnswerScore score_answers(std::span<const std::string> answers,
                          std::span<const std::string> references);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_TRAINER_ANSWER_SCORE_H_
