// SPDX-License-Identifier: Apache-2.0
// Asks questions and judges answers: from a question to its record, and from records to a summary.
#ifndef OUTRIDER_EVAL_EVALUATION_H_
#define OUTRIDER_EVAL_EVALUATION_H_

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "eval/metrics/metric.h"
#include "eval/record.h"
#include "eval/tasks/question.h"
#include "outrider/error.h"
#include "outrider/generate.h"
#include "outrider/model.h"
#include "sampling/bootstrap.h"

namespace outrider::eval {

// A problem with one item alone; the others can still be asked.
class ItemError : public Error {
 public:
  using Error::Error;
};

using Metrics = std::vector<std::unique_ptr<Metric>>;

struct AskOptions {
  // max_tokens and stop_strings are the task's, unless the user says otherwise. Sample s of item i
  // is drawn with a seed made of (seed, i, s), so answers do not depend on which other items are
  // asked.
  GenerateOptions generate = {};
  int n_samples = 1;
  // Makes the generator's request from a prompt; empty: the prompt is the beginning of the text.
  std::function<GenerateRequest(const std::string& prompt, const GenerateOptions& options)>
      request = {};
};

// Answers a request.
using Answerer = std::function<GenerateResult(const GenerateRequest& request)>;

// Asks one question n_samples times and judges the answers. Empty if cancelled
// (GenerateOptions::cancel). Throws ItemError, with the item, for a problem of this item alone (for
// example a prompt longer than the context), and UsageError for a problem of all items.
std::optional<Record> ask(const Answerer& answerer, const Model& model, const Question& question,
                          const Metrics& metrics, const AskOptions& options);
std::optional<Record> ask(Generator& generator, const Model& model, const Question& question,
                          const Metrics& metrics, const AskOptions& options);

// Scores the target's likelihood of the question's text, for metrics of likelihood.
std::optional<Record> read(const Model& model, const Question& question, const Metrics& metrics,
                           const AskOptions& options);

struct ScoreSummary {
  std::string metric;
  std::string name;
  double value = 0;
  Interval interval;
  bool larger_is_better = true;
};

struct SliceSummary {
  std::string name;  // empty: all items
  int n_items = 0;
  std::vector<ScoreSummary> scores;  // empty without items
  Effort effort;
};

struct Summary {
  SliceSummary all;
  std::vector<SliceSummary> slices;                             // by name; empty without slices
  std::vector<std::pair<std::string, std::string>> signatures;  // of metrics
};

// From records of one task.
Summary summarize(std::span<const Record> records, const Metrics& metrics,
                  const BootstrapOptions& options = {});

// tau, acceptance rate and the like, with the names of `generate --json`.
nlohmann::ordered_json to_json(const Effort& effort);
nlohmann::ordered_json to_json(const Summary& summary);
// Lines for terminals.
std::string to_text(const Summary& summary);

}  // namespace outrider::eval

#endif  // OUTRIDER_EVAL_EVALUATION_H_
