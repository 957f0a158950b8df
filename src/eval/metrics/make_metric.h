// SPDX-License-Identifier: Apache-2.0
// Makes metrics from their names in task files.
#ifndef OUTRIDER_EVAL_METRICS_MAKE_METRIC_H_
#define OUTRIDER_EVAL_METRICS_MAKE_METRIC_H_

#include <memory>
#include <string>
#include <vector>

#include "eval/metrics/metric.h"
#include "eval/tasks/task.h"

namespace outrider::eval {

struct MetricOptions {
  // Run generated programs even if they cannot be isolated from the network.
  bool allow_network = false;
  // Checks specs and makes nothing that runs programs: count() of pass@k must not be called.
  bool only_score = false;
};

// A task's metrics. Specs: "bleu", "chrf", "rouge", "squad[:no-answer=WORD]", "numeric", "pass@K",
// "perplexity". Empty for a task without metrics, which is run for its cost. Throws Error for an
// unknown name, references or a program that the task lacks, and metrics of likelihood mixed with
// others; and what PythonRunner throws.
std::vector<std::unique_ptr<Metric>> make_metrics(const Task& task,
                                                  const MetricOptions& options = {});

}  // namespace outrider::eval

#endif  // OUTRIDER_EVAL_METRICS_MAKE_METRIC_H_
