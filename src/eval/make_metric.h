// Metrics from the names that task files use.
#ifndef OUTRIDER_EVAL_MAKE_METRIC_H_
#define OUTRIDER_EVAL_MAKE_METRIC_H_

#include <memory>
#include <string>
#include <vector>

#include "eval/metric.h"
#include "eval/task.h"

namespace outrider::eval {

struct MetricOptions {
  // Run generated programs where they cannot be kept off the network, too.
  bool allow_network = false;
  // Checks specs and makes nothing that runs programs: count() of pass@k may not be called.
  bool only_score = false;
};

// A task's metrics. Specs: "bleu", "chrf", "rouge", "squad[:no-answer=WORD]", "numeric", "pass@K",
// "perplexity". A task without any is run for what it costs: an empty list. Throws Error on an
// unknown name, on references or a program that the task lacks, on metrics of likelihood beside
// others, and what PythonRunner throws.
std::vector<std::unique_ptr<Metric>> make_metrics(const Task& task,
                                                  const MetricOptions& options = {});

}  // namespace outrider::eval

#endif  // OUTRIDER_EVAL_MAKE_METRIC_H_
