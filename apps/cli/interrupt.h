// SPDX-License-Identifier: Apache-2.0
// Handles Ctrl-C (SIGINT) and SIGTERM, which service managers, `timeout` and `kill` send. The first
// signal requests an end after the current pass; the second kills the program.
#ifndef OUTRIDER_APPS_CLI_INTERRUPT_H_
#define OUTRIDER_APPS_CLI_INTERRUPT_H_

#include <atomic>
#include <stdexcept>

namespace outrider::cli {

// Thrown if a signal comes while a model loads, when there is no result to show. The exit status is
// 130.
class Interrupted : public std::runtime_error {
 public:
  Interrupted() : std::runtime_error("interrupted") {}
};

// Handles both signals during its lifetime; at most one object exists at a time. Blocking system
// calls are interrupted (EINTR).
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  bool raised() const;           // a signal since the last reset(), or any SIGTERM
  void throw_if_raised() const;  // Interrupted
  void stop();                   // ends the text like a signal, but raised() stays false
  void reset();                  // clears the request, except SIGTERM's
  static bool must_end();        // SIGTERM has come: begin nothing new
  // Set by the first signal since the last reset(). For code that waits without access to an
  // object.
  static const std::atomic<bool>* signal_flag();
  // Clears SIGTERM after the command has handled it: the exit status is then the command's own.
  static void settle();
  const std::atomic<bool>* flag();  // for GenerateOptions::cancel
};

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_CLI_INTERRUPT_H_
