// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/interrupt.h"

#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <iterator>

namespace outrider::cli {
namespace {

// A handler can use only globals. Lock-free atomics are safe in it.
std::atomic<bool> signalled{false};
std::atomic<bool> cancelled{false};
std::atomic<bool> terminated{false};
std::atomic<bool> output_is_terminal{false};
static_assert(std::atomic<bool>::is_always_lock_free);

constexpr int kSignals[] = {SIGINT, SIGTERM};
struct sigaction previous_actions[std::size(kSignals)];

void on_interrupt(int signal_number) {
  if (signal_number == SIGTERM) terminated.store(true);
  cancelled.store(true);
  if (!signalled.exchange(true)) return;
  // The second signal: resets the terminal's colours and ends the program by the signal, which is
  // delivered when this handler returns.
  constexpr char kReset[] = "\x1b[0m\n";
  if (output_is_terminal.load() && ::write(STDOUT_FILENO, kReset, sizeof(kReset) - 1) < 0) {
    // Nothing can be done if the terminal is gone.
  }
  std::signal(signal_number, SIG_DFL);
  ::raise(signal_number);
}

}  // namespace

Interrupt::Interrupt() {
  reset();
  output_is_terminal.store(::isatty(STDOUT_FILENO) == 1);
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  ::sigemptyset(&action.sa_mask);
  action.sa_flags = 0;  // without SA_RESTART, so that reading a line ends too
  for (std::size_t i = 0; i < std::size(kSignals); ++i) {
    struct sigaction& previous = previous_actions[i];
    ::sigaction(kSignals[i], &action, &previous);
    // If the caller ignores SIGINT (nohup, a script's background job), so does this program.
    if (previous.sa_handler == SIG_IGN) ::sigaction(kSignals[i], &previous, nullptr);
  }
}

Interrupt::~Interrupt() {
  for (std::size_t i = 0; i < std::size(kSignals); ++i) {
    ::sigaction(kSignals[i], &previous_actions[i], nullptr);
  }
}

bool Interrupt::raised() const { return signalled.load() || must_end(); }

void Interrupt::throw_if_raised() const {
  if (raised()) throw Interrupted();
}

void Interrupt::stop() { cancelled.store(true); }

void Interrupt::reset() {
  signalled.store(false);
  cancelled.store(false);
  if (must_end()) cancelled.store(true);  // checked last: SIGTERM may arrive at any moment
}

bool Interrupt::must_end() { return terminated.load(); }

const std::atomic<bool>* Interrupt::signal_flag() { return &signalled; }

void Interrupt::settle() { terminated.store(false); }

const std::atomic<bool>* Interrupt::flag() { return &cancelled; }

}  // namespace outrider::cli
