// SPDX-License-Identifier: Apache-2.0
#include "tests/support/run_program.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string_view>

#include "tests/support/temporary_directory.h"

namespace outrider::test {
namespace {

using Clock = std::chrono::steady_clock;

// Both ends of a pipe; the destructor closes ends that are still open.
struct Pipe {
  int read = -1;
  int write = -1;
  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe2 failed");
    read = ends[0];
    write = ends[1];
  }
  ~Pipe() {
    close(read);
    close(write);
  }
  static void close(int& descriptor) {
    if (descriptor >= 0) ::close(descriptor);
    descriptor = -1;
  }
};

// Appends the available bytes; closes the descriptor at end of file.
void drain(int& descriptor, std::string& text) {
  std::array<char, 4096> bytes{};
  const ssize_t n_read = ::read(descriptor, bytes.data(), bytes.size());
  if (n_read > 0) {
    text.append(bytes.data(), static_cast<std::size_t>(n_read));
  } else if (n_read == 0 || errno != EINTR) {
    Pipe::close(descriptor);
  }
}

// Programs must not write to the user's cache folder: this process has a folder of its own, also
// for programs that tests start in other ways.
const bool kHasCacheFolder = [] {
  static const TemporaryDirectory cache;
  return ::setenv("XDG_CACHE_HOME", cache.path().c_str(), /*overwrite=*/0) == 0;
}();

}  // namespace

ProgramRun run_program(const std::vector<std::string>& arguments, const ProgramInput& input) {
  if (!kHasCacheFolder) throw std::runtime_error("setenv failed");
  std::vector<std::string> words = {input.program.empty() ? OUTRIDER_PROGRAM : input.program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);

  Pipe in;
  Pipe out;
  Pipe err;
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) {
    // Only calls that are async-signal-safe between fork and exec in a program with threads.
    ::dup2(in.read, STDIN_FILENO);
    ::dup2(err.write, STDERR_FILENO);
    if (input.close_output_at_start) {
      ::close(STDOUT_FILENO);
    } else {
      ::dup2(out.write, STDOUT_FILENO);
    }
    ::signal(SIGINT, SIG_DFL);  // a test runner in the background may ignore it
    ::signal(SIGPIPE, SIG_DFL);
    ::execv(pointers[0], pointers.data());
    ::_exit(127);
  }
  Pipe::close(in.read);
  Pipe::close(out.write);
  Pipe::close(err.write);
  std::signal(SIGPIPE, SIG_IGN);  // A program that reads no input must not end the test.

  ProgramRun run;
  std::string_view unsent = input.standard_input;
  const Clock::time_point started = Clock::now();
  bool interrupted = !input.interrupt_after && !input.interrupt_at_output && !input.interrupt_when;
  while (out.read >= 0 || err.read >= 0) {
    if (unsent.empty()) Pipe::close(in.write);
    std::array<pollfd, 3> waiting = {
        {{out.read, POLLIN, 0}, {err.read, POLLIN, 0}, {in.write, POLLOUT, 0}}};
    ::poll(waiting.data(), waiting.size(), interrupted ? -1 : 5);
    if (waiting[0].revents != 0) drain(out.read, run.out);
    if (waiting[1].revents != 0) drain(err.read, run.err);
    if (waiting[2].revents != 0) {
      const ssize_t written =
          ::write(in.write, unsent.data(), std::min<std::size_t>(unsent.size(), 4096));
      if (written < 0) {
        unsent = {};
      } else {
        unsent.remove_prefix(static_cast<std::size_t>(written));
      }
    }
    if (input.close_output_at_first_byte && !run.out.empty()) Pipe::close(out.read);
    const bool due = (input.interrupt_after && Clock::now() - started >= *input.interrupt_after) ||
                     (input.interrupt_at_output && !run.out.empty()) ||
                     (!interrupted && input.interrupt_when && input.interrupt_when(run));
    if (!interrupted && due) {
      ::kill(child, SIGINT);
      interrupted = true;
    }
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  run.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return run;
}

std::string installed_program(const std::string& name) {
  const char* const path = std::getenv("PATH");
  std::string_view folders = path == nullptr ? "" : path;
  while (!folders.empty()) {
    const std::string_view folder = folders.substr(0, folders.find(':'));
    folders.remove_prefix(std::min(folders.size(), folder.size() + 1));
    const std::filesystem::path file = std::filesystem::path(folder) / name;
    if (!folder.empty() && ::access(file.c_str(), X_OK) == 0) return file.string();
  }
  return {};
}

}  // namespace outrider::test
