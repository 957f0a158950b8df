// SPDX-License-Identifier: Apache-2.0
#include "eval/tasks/python_runner.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <system_error>

#include "eval/tasks/isolated_child.h"
#include "outrider/error.h"

namespace outrider::eval {
namespace {

namespace fs = std::filesystem;
constexpr const char* kOperation = "run program";

class ScratchDirectory {
 public:
  ScratchDirectory() {
    std::string name = (fs::temp_directory_path() / "outrider-program-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw Error(kOperation, name, std::strerror(errno));
    path_ = name;
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  ~ScratchDirectory() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::string last_line(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  const std::size_t newline = text.rfind('\n');
  return std::string(newline == std::string_view::npos ? text : text.substr(newline + 1));
}

std::string ending(int status) {
  if (WIFSIGNALED(status)) return fmt::format("killed by signal {}", WTERMSIG(status));
  return fmt::format("ended early with status {}", WEXITSTATUS(status));
}

ProgramOutcome run_with(const fs::path& interpreter, std::string_view source,
                        const Isolation& isolation, const PythonLimits& limits) {
  const ScratchDirectory scratch;
  // Only the last line writes it: a program that exits before its tests has not passed.
  std::random_device entropy;
  const std::string token = fmt::format("{:08x}{:08x}", entropy(), entropy());
  const fs::path file = scratch.path() / "program.py";
  {
    std::ofstream out(file, std::ios::binary);
    out << source << "\n__import__('os').write(3, b'" << token << "')\n";
    out.flush();
    if (!out) throw Error(kOperation, file.string(), "cannot be written");
  }
  // -s: without the user's packages; -B: without compiled files.
  const ChildRun run = run_isolated({interpreter.string(), "-s", "-B", file.string()},
                                    scratch.path(), isolation, limits);
  if (run.timed_out) {
    return {.kind = ProgramOutcome::Kind::timed_out,
            .detail = fmt::format("no end within {} seconds", limits.wall_seconds)};
  }
  if (run.report == token) return {.kind = ProgramOutcome::Kind::passed, .detail = {}};
  std::string detail = last_line(run.errors);
  if (detail.empty()) detail = ending(run.status);
  return {.kind = ProgramOutcome::Kind::failed, .detail = std::move(detail)};
}

}  // namespace

PythonRunner::PythonRunner(bool allow_network, const PythonLimits& limits)
    : limits_(limits), isolation_(probe_isolation()) {
  if (!isolation_.network && !allow_network) {
    throw Error(kOperation, "generated Python",
                "a network namespace to keep it off the network (root, or user namespaces), or "
                "--allow-network",
                "neither");
  }
  const char* const path = std::getenv("PATH");
  std::string_view folders = path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path;
  std::string refused;
  while (!folders.empty()) {
    const std::string_view folder = folders.substr(0, folders.find(':'));
    folders.remove_prefix(std::min(folders.size(), folder.size() + 1));
    if (folder.empty()) continue;
    const fs::path candidate = fs::path(folder) / "python3";
    if (::access(candidate.c_str(), X_OK) != 0) continue;
    const ProgramOutcome outcome = run_with(candidate, "", isolation_, limits_);
    if (outcome.kind == ProgramOutcome::Kind::passed) {
      interpreter_ = candidate;
      return;
    }
    refused = fmt::format("{} ({})", candidate.string(), outcome.detail);
  }
  throw Error(kOperation, "python3", "an interpreter in PATH that runs in isolation",
              refused.empty() ? "none" : refused);
}

ProgramOutcome PythonRunner::run(std::string_view source) const {
  return run_with(interpreter_, source, isolation_, limits_);
}

}  // namespace outrider::eval
