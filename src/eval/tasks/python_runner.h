// SPDX-License-Identifier: Apache-2.0
// Runs Python programs that a model wrote.
#ifndef OUTRIDER_EVAL_TASKS_PYTHON_RUNNER_H_
#define OUTRIDER_EVAL_TASKS_PYTHON_RUNNER_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace outrider::eval {

struct PythonLimits {
  int wall_seconds = 10;                              // also the limit of processor time
  std::int64_t memory_bytes = std::int64_t{2} << 30;  // address space
  std::int64_t file_bytes = std::int64_t{16} << 20;   // each written file, including its output
  int n_processes = 16;
};

struct ProgramOutcome {
  enum class Kind {
    passed,     // it ran to its last line
    failed,     // an exception, an early exit, a signal, a limit
    timed_out,  // the wall-clock limit
  };
  Kind kind = Kind::failed;
  std::string detail;  // for a failure: the last line of standard error, or the reason
};

// The isolation that the machine supports. Namespaces require root or a kernel that lets users
// create them.
struct Isolation {
  bool network = false;    // no interface but an unconnected loopback
  bool processes = false;  // its processes end with it, whatever they do
  bool files = false;      // it can write only in its own directory
};

// Every program runs in a separate child process: a new process group, in a temporary directory
// that is removed afterwards, with an empty standard input, a small environment and resource limits
// (processor time, address space, processes, file sizes, no core files). The group is killed when
// the program ends, its time is up, or this process dies. As root it runs as the user nobody.
//
// This does not make an untrusted program harmless, and the limit on processes has little effect if
// the machine supports no namespaces. For an untrusted model, use a virtual machine. Not
// thread-safe.
class PythonRunner {
 public:
  // Uses the first python3 in PATH that runs under these conditions. Throws Error if there is none,
  // and, unless allow_network, if programs cannot be isolated from the network.
  explicit PythonRunner(bool allow_network, const PythonLimits& limits = {});

  const Isolation& isolation() const { return isolation_; }
  const std::filesystem::path& interpreter() const { return interpreter_; }

  // Throws Error if no child can be started at all; everything the program does is an outcome.
  ProgramOutcome run(std::string_view source) const;

 private:
  PythonLimits limits_;
  Isolation isolation_;
  std::filesystem::path interpreter_;
};

}  // namespace outrider::eval

#endif  // OUTRIDER_EVAL_TASKS_PYTHON_RUNNER_H_
