// SPDX-License-Identifier: Apache-2.0
// The folders in which task files are found by name.
#ifndef OUTRIDER_APPS_EVALUATION_EVAL_TASK_FOLDERS_H_
#define OUTRIDER_APPS_EVALUATION_EVAL_TASK_FOLDERS_H_

#include <filesystem>
#include <vector>

namespace outrider::cli {

// The folders in search order: OUTRIDER_TASKS, if it is set; the folder installed with this
// program; for a program in its build directory, the tasks of its sources. Throws UsageError if
// OUTRIDER_TASKS is not a folder.
std::vector<std::filesystem::path> task_folders();

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_EVALUATION_EVAL_TASK_FOLDERS_H_
