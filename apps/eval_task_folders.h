// Where task files are found by name.
#ifndef OUTRIDER_APPS_EVAL_TASK_FOLDERS_H_
#define OUTRIDER_APPS_EVAL_TASK_FOLDERS_H_

#include <filesystem>
#include <vector>

namespace outrider::cli {

// OUTRIDER_TASKS, if it is set; then what was installed with this program; for a program that runs
// where it was built, the tasks of its sources. Throws UsageError where OUTRIDER_TASKS is no
// folder.
std::vector<std::filesystem::path> task_folders();

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_EVAL_TASK_FOLDERS_H_
