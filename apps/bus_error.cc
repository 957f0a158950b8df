#include "bus_error.h"

#include <unistd.h>

#include <csignal>
#include <string_view>

#include "commands.h"

namespace outrider::cli {
namespace {

// Only calls that are safe in a handler; no exception could leave the faulting instruction.
void on_bus_error(int signal_number, siginfo_t* info, void* /*context*/) {
  // BUS_ADRERR: a mapped address with nothing behind it. Broken memory, misaligned accesses and
  // signals that another process sends have other codes.
  if (info->si_code == BUS_ADRERR) {
    constexpr std::string_view kLine =
        "outrider: [read file] a model's file: expected it to stay as it was when opened, got one "
        "that was cut short or cannot be read any more\n";
    if (::write(STDERR_FILENO, kLine.data(), kLine.size()) < 0) {
      // Nobody to tell; the status does.
    }
    ::_exit(kExitError);
  }
  std::signal(signal_number, SIG_DFL);
  ::raise(signal_number);
}

}  // namespace

void explain_bus_errors() {
  struct sigaction action = {};
  action.sa_sigaction = on_bus_error;
  ::sigemptyset(&action.sa_mask);
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace outrider::cli
