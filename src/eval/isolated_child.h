// The system's side of running a program nobody has read: a child with namespaces and limits.
#ifndef OUTRIDER_EVAL_ISOLATED_CHILD_H_
#define OUTRIDER_EVAL_ISOLATED_CHILD_H_

#include <filesystem>
#include <string>
#include <vector>

#include "eval/python_runner.h"

namespace outrider::eval {

struct ChildRun {
  bool timed_out = false;
  int status = 0;      // as waitpid gives it
  std::string errors;  // the end of its standard error
  std::string report;  // what it wrote to descriptor 3, at most 64 bytes
};

// What a child may be given here; tries it with children that do nothing.
Isolation probe_isolation();

// Runs arguments[0] in `directory` (which becomes the user nobody's if this is root) until it ends
// or its time is up. Throws Error if no child can be started.
ChildRun run_isolated(const std::vector<std::string>& arguments,
                      const std::filesystem::path& directory, const Isolation& isolation,
                      const PythonLimits& limits);

}  // namespace outrider::eval

#endif  // OUTRIDER_EVAL_ISOLATED_CHILD_H_
