// Asking and judging: from a question to its record, from records to a summary.
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

#include "eval/metric.h"
#include "eval/question.h"
#include "eval/record.h"
#include "outrider/error.h"
#include "outrider/generate.h"
#include "outrider/model.h"
#include "sampling/bootstrap.h"

namespace outrider::eval {

// What is wrong with one item alone; the others can be asked all the same.
class ItemError : public Error {
 public:
  using Error::Error;
};

using Metrics = std::vector<std::unique_ptr<Metric>>;

struct AskOptions {
  // max_tokens and stop_strings as the task has them, unless the user says otherwise. Sample s of
  // item i is drawn with a seed made of (seed, i, s), so that answers do not depend on which other
  // items are asked.
  GenerateOptions generate = {};
  int n_samples = 1;
  // From a prompt to what the generator takes; empty: the prompt is the text's beginning.
  std::function<GenerateRequest(const std::string& prompt, const GenerateOptions& options)>
      request = {};
};

// What makes an answer of a request.
using Answerer = std::function<GenerateResult(const GenerateRequest& request)>;

// Asks one question, n_samples times, and judges the answers. Nothing if cancelled
// (GenerateOptions::cancel). Throws ItemError, naming the item, for what is wrong with this item
// alone (a prompt longer than the context, say), UsageError for what would be wrong with any.
std::optional<Record> ask(const Answerer& answerer, const Model& model, const Question& question,
                          const Metrics& metrics, const AskOptions& options);
std::optional<Record> ask(Generator& generator, const Model& model, const Question& question,
                          const Metrics& metrics, const AskOptions& options);

// Scores how likely the target thinks the question's text; for metrics of likelihood.
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

// tau, acceptance rate and the like, under the names that `generate --json` has.
nlohmann::ordered_json to_json(const Effort& effort);
nlohmann::ordered_json to_json(const Summary& summary);
// Lines for people.
std::string to_text(const Summary& summary);

}  // namespace outrider::eval

#endif  // OUTRIDER_EVAL_EVALUATION_H_
