// SPDX-License-Identifier: Apache-2.0
// Runs an untrusted program as a child process with namespaces and limits.
#ifndef OUTRIDER_EVAL_TASKS_ISOLATED_CHILD_H_
#define OUTRIDER_EVAL_TASKS_ISOLATED_CHILD_H_

#include <filesystem>
#include <string>
#include <vector>

#include "eval/tasks/python_runner.h"

namespace outrider::eval {

struct ChildRun {
  bool timed_out = false;
  int status = 0;      // as from waitpid
  std::string errors;  // the end of its standard error
  std::string report;  // its output on descriptor 3, at most 64 bytes
};

// The isolation that this machine supports, tested with children that do nothing.
Isolation probe_isolation();

// Runs arguments[0] in `directory` (owned by the user nobody if this is root) until it ends or its
// time is up. Throws Error if no child can be started.
ChildRun run_isolated(const std::vector<std::string>& arguments,
                      const std::filesystem::path& directory, const Isolation& isolation,
                      const PythonLimits& limits);

}  // namespace outrider::eval

#endif  // OUTRIDER_EVAL_TASKS_ISOLATED_CHILD_H_
