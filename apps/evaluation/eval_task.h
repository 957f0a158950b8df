// SPDX-License-Identifier: Apache-2.0
// outrider eval --task: asks a model the items of a data set and scores the answers.
#ifndef OUTRIDER_APPS_EVALUATION_EVAL_TASK_H_
#define OUTRIDER_APPS_EVALUATION_EVAL_TASK_H_

#include <CLI/CLI.hpp>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/flags/model_flags.h"
#include "apps/flags/verdict_log_flags.h"
#include "eval/evaluation.h"
#include "eval/tasks/question.h"
#include "eval/tasks/task.h"
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
  std::string encoder_prompt;  // a template; empty: the task's prompt
  bool allow_network = false;
  GenerateOptions options;
  VerdictLogFlags verdict_log;
};

// A task with all options of the flags and its data.
struct PreparedTask {
  eval::Task task;
  GenerateOptions options;
  eval::Metrics metrics;
  std::string data;  // identifies the items' data
  eval::QuestionSet set;
};
// Reads the data. `app` tells which flags were given: the task's own limits apply where a flag was
// not.
PreparedTask prepare_task(const CLI::App& app, const TaskFlags& flags);

// All settings that determine the answers, so that records of different runs are never mixed. The
// number of items and of threads is not among them.
nlohmann::ordered_json configuration_of(const ModelFlags& model_flags, const TaskFlags& flags,
                                        const PreparedTask& prepared);

// Throws UsageError if an encoder prompt is given for a decoder-only model.
void check_encoder_prompt(const TaskFlags& flags, const Model& model);

// The way to ask this model questions. The model must outlive the result. Throws as
// check_encoder_prompt() does.
eval::AskOptions asking_of(const TaskFlags& flags, const Model& model,
                           const GenerateOptions& options);

bool reads_likelihood(const eval::Metrics& metrics);

// The destination of results.
struct TaskOutput {
  std::string records;  // empty: no records are kept
  bool json = false;
};

// Flags of tasks, and those of sampling.
void add_task_flags(CLI::App& app, TaskFlags& flags);

// --list: a text table, or a JSON list of objects.
int list_tasks(bool json);

int run_task(const CLI::App& app, const ModelFlags& model_flags, const TaskFlags& flags,
             const TaskOutput& where);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_EVALUATION_EVAL_TASK_H_
