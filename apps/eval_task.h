// outrider eval --task: the items of a data set asked and judged.
#ifndef OUTRIDER_APPS_EVAL_TASK_H_
#define OUTRIDER_APPS_EVAL_TASK_H_

#include <CLI/CLI.hpp>
#include <limits>
#include <string>
#include <vector>

#include "model_flags.h"
#include "outrider/generate.h"

namespace outrider::cli {

struct TaskFlags {
  std::string task;
  std::vector<std::string> data;
  bool list = false;
  int limit = std::numeric_limits<int>::max();
  int examples = -1;  // all
  int samples = 1;
  bool chat = false;
  bool allow_network = false;
  GenerateOptions options;
};

// Where results go.
struct TaskOutput {
  std::string records;  // empty: none are kept
  bool json = false;
};

// Flags of tasks, and those of sampling.
void add_task_flags(CLI::App& app, TaskFlags& flags);

// --list
int list_tasks();

// `app` tells which flags were given: a task's own limits stand where they were not.
int run_task(const CLI::App& app, const ModelFlags& model_flags, const TaskFlags& flags,
             const TaskOutput& where);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_EVAL_TASK_H_
