// SPDX-License-Identifier: Apache-2.0
// outrider eval --frontier: runs a task in many settings, each compared with plain decoding.
#ifndef OUTRIDER_APPS_EVALUATION_EVAL_FRONTIER_H_
#define OUTRIDER_APPS_EVALUATION_EVAL_FRONTIER_H_

#include <CLI/CLI.hpp>
#include <limits>
#include <string>

#include "apps/evaluation/eval_grid_flags.h"
#include "apps/evaluation/eval_task.h"
#include "apps/flags/model_flags.h"

namespace outrider::cli {

struct FrontierFlags {
  bool chosen = false;
  std::string cascades;
  int n_timed = std::numeric_limits<int>::max();  // questions
};

// --frontier, and the flags that need it.
void add_frontier_flags(CLI::App& app, FrontierFlags& flags);

// The report's directory also holds the records, so the same command continues an interrupted run.
int run_frontier(const CLI::App& app, const ModelFlags& model_flags, const GridFlags& grid,
                 const TaskFlags& task_flags, const FrontierFlags& flags, const ReportWhere& where);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_EVALUATION_EVAL_FRONTIER_H_
