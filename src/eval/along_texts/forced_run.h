// SPDX-License-Identifier: Apache-2.0
// A whole run of teacher forcing: files in, rows out.
#ifndef OUTRIDER_EVAL_ALONG_TEXTS_FORCED_RUN_H_
#define OUTRIDER_EVAL_ALONG_TEXTS_FORCED_RUN_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "eval/along_texts/forced_report.h"
#include "eval/along_texts/teacher_forced.h"
#include "outrider/generate.h"
#include "outrider/model.h"

namespace outrider::eval {

// Progress of a run.
struct ForcedProgress {
  std::size_t n_texts = 0;  // measured
  std::size_t n_all_texts = 0;
  std::int64_t n_tokens = 0;  // predicted, of the current text
  std::int64_t n_all_tokens = 0;
};

struct ForcedRequest {
  std::vector<Passage> passages;
  std::vector<std::string> sources = {};  // their origin, for the report
  int window = 0;         // tokens that a model sees at a time; 0: the shorter context
  ForcedOptions options;  // n_threads 0: as many as there are processors
};

// Measures the passages with at least one token to predict. `speculation` names the drafter, a
// model. `progress`, if given, is called after every text and sometimes within one, and may throw
// to end the run. Throws Error and UsageError for invalid input.
struct ForcedMeasurement {
  ForcedRun run;
  std::vector<ForcedRow> rows;
};
ForcedMeasurement run_teacher_forced(
    const Model& target, const SpeculationOptions& speculation, const ForcedRequest& request,
    const std::function<void(const ForcedProgress&)>& progress = {});

}  // namespace outrider::eval

#endif  // OUTRIDER_EVAL_ALONG_TEXTS_FORCED_RUN_H_
