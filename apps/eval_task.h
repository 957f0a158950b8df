// outrider eval --task: the items of a data set asked and judged.
#ifndef OUTRIDER_APPS_EVAL_TASK_H_
#define OUTRIDER_APPS_EVAL_TASK_H_

#include <CLI/CLI.hpp>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "eval/evaluation.h"
#include "eval/question.h"
#include "eval/task.h"
#include "model_flags.h"
#include "outrider/generate.h"
#include "verdict_log_flags.h"

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

// What is asked, with everything that the flags say of how. Reads the data.
struct PreparedTask {
  eval::Task task;
  GenerateOptions options;
  eval::Metrics metrics;
  std::string data;  // what the items are told by
  eval::QuestionSet set;
};
// `app` tells which flags were given: a task's own limits stand where they were not.
PreparedTask prepare_task(const CLI::App& app, const TaskFlags& flags);

// Everything that decides what an answer is, so that records of one run are never taken for those
// of another. How many items are asked, and by how many threads, does not.
nlohmann::ordered_json configuration_of(const ModelFlags& model_flags, const TaskFlags& flags,
                                        const PreparedTask& prepared);

// Throws UsageError where a decoder is to have an encoder's prompt.
void check_encoder_prompt(const TaskFlags& flags, const Model& model);

// How questions are asked of this model. It outlives what is returned. Throws as that does.
eval::AskOptions asking_of(const TaskFlags& flags, const Model& model,
                           const GenerateOptions& options);

bool reads_likelihood(const eval::Metrics& metrics);

// Where results go.
struct TaskOutput {
  std::string records;  // empty: none are kept
  bool json = false;
};

// Flags of tasks, and those of sampling.
void add_task_flags(CLI::App& app, TaskFlags& flags);

// --list: lines for people, or a JSON list of objects.
int list_tasks(bool json);

int run_task(const CLI::App& app, const ModelFlags& model_flags, const TaskFlags& flags,
             const TaskOutput& where);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_EVAL_TASK_H_
