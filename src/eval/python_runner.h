// Runs Python programs that a model wrote.
#ifndef OUTRIDER_EVAL_PYTHON_RUNNER_H_
#define OUTRIDER_EVAL_PYTHON_RUNNER_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace outrider::eval {

struct PythonLimits {
  int wall_seconds = 10;                              // also the limit of processor time
  std::int64_t memory_bytes = std::int64_t{2} << 30;  // address space
  std::int64_t file_bytes = std::int64_t{16} << 20;   // each file written, what it prints included
  int n_processes = 16;
};

struct ProgramOutcome {
  enum class Kind {
    passed,     // it ran to its last line
    failed,     // an exception, an early exit, a signal, a limit
    timed_out,  // the wall-clock limit
  };
  Kind kind = Kind::failed;
  std::string detail;  // of a failure: the last line of standard error, or what ended it
};

// What the machine allows to be taken from a program. Namespaces want either root or a kernel that
// lets users make them.
struct Isolation {
  bool network = false;    // no interface but an unconnected loopback
  bool processes = false;  // its processes die with it, whatever they do
  bool files = false;      // it can write in its own directory alone
};

// Every program runs in a child of its own: a new process group, in a temporary directory that is
// removed afterwards, with an empty standard input, a small environment, resource limits
// (processor time, address space, processes, file sizes, no core files), killed as a group when it
// ends or its time is up, and when this process dies. As root it runs as the user nobody.
//
// None of it makes a stranger's program harmless, and the limit on processes means little where
// the machine allows no namespaces; a virtual machine is the better fence for a model one does not
// trust. Not thread-safe.
class PythonRunner {
 public:
  // Finds an interpreter, the first python3 in PATH that runs under these conditions. Throws Error
  // if there is none, and if programs cannot be kept off the network unless allow_network.
  explicit PythonRunner(bool allow_network, const PythonLimits& limits = {});

  const Isolation& isolation() const { return isolation_; }
  const std::filesystem::path& interpreter() const { return interpreter_; }

  // Throws Error if no child can be started at all; whatever the program does is an outcome.
  ProgramOutcome run(std::string_view source) const;

 private:
  PythonLimits limits_;
  Isolation isolation_;
  std::filesystem::path interpreter_;
};

}  // namespace outrider::eval

#endif  // OUTRIDER_EVAL_PYTHON_RUNNER_H_
