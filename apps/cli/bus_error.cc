// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/bus_error.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <string>

#include "apps/commands.h"

namespace outrider::cli {
namespace {

// A handler can use only globals and must not allocate, so the line is prepared.
std::string line;
std::atomic_flag reported = ATOMIC_FLAG_INIT;  // always lock-free

void on_bus_error(int signal_number, siginfo_t* info, void* /*context*/) {
  // BUS_ADRERR: a mapped address beyond the end of its file. Broken memory, misaligned accesses and
  // signals from other processes have other codes.
  if (info->si_code == BUS_ADRERR) {
    // Threads that read the same file reach its end together; one reports it.
    while (reported.test_and_set()) ::pause();
    if (::write(STDERR_FILENO, line.data(), line.size()) < 0) {
      // The message cannot be shown; the exit status remains.
    }
    ::_exit(kExitError);
  }
  std::signal(signal_number, SIG_DFL);
  ::raise(signal_number);
}

}  // namespace

void explain_bus_errors(std::string_view program) {
  line = fmt::format(
      "{}: [read file] a model's file: expected it to stay as it was when opened, got one that was "
      "cut short or cannot be read any more\n",
      program);
  struct sigaction action = {};
  action.sa_sigaction = on_bus_error;
  ::sigemptyset(&action.sa_mask);
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace outrider::cli
