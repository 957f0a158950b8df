// SPDX-License-Identifier: Apache-2.0
#include "apps/evaluation/eval_task_folders.h"

#include <cstdlib>
#include <system_error>

#include "outrider/error.h"

namespace outrider::cli {

std::vector<std::filesystem::path> task_folders() {
  namespace fs = std::filesystem;
  std::vector<fs::path> folders;
  const char* const given = std::getenv("OUTRIDER_TASKS");
  std::error_code failed;
  if (given != nullptr && *given != '\0') {
    if (!fs::is_directory(given, failed)) {
      throw UsageError("find tasks", "OUTRIDER_TASKS", "a folder with task files", given);
    }
    folders.emplace_back(given);
  }
  const fs::path self = fs::read_symlink("/proc/self/exe", failed);
  if (failed) return folders;
  const fs::path above = self.parent_path().parent_path();
  folders.push_back(above / "share" / "outrider" / "tasks");
  folders.push_back(above / "tasks");
  return folders;
}

}  // namespace outrider::cli
