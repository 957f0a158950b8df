// SPDX-License-Identifier: Apache-2.0
// outrider eval --teacher-forced: compares all rules along given texts.
#ifndef OUTRIDER_APPS_EVALUATION_EVAL_TEACHER_FORCED_H_
#define OUTRIDER_APPS_EVALUATION_EVAL_TEACHER_FORCED_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "apps/evaluation/eval_grid_flags.h"
#include "apps/evaluation/eval_task.h"
#include "apps/flags/model_flags.h"

namespace outrider::cli {

struct TeacherForcedFlags {
  bool chosen = false;
  std::vector<std::string> text;
  std::string separator;
  int texts = 0;
  int window = 0;
};

// --teacher-forced, and the flags that need it.
void add_teacher_forced_flags(CLI::App& app, TeacherForcedFlags& flags);

// Uses the documents of the text. If a task is given, it uses the task's prompts, each followed by
// its first reference.
int run_teacher_forced(const CLI::App& app, const ModelFlags& model_flags, const GridFlags& grid,
                       const TaskFlags& task, const TeacherForcedFlags& flags,
                       const ReportWhere& where);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_EVALUATION_EVAL_TEACHER_FORCED_H_
