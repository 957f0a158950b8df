// Ctrl-C, and SIGTERM, which service managers, `timeout` and `kill` send: the first asks for an end
// after the pass in progress, the second kills.
#ifndef OUTRIDER_APPS_INTERRUPT_H_
#define OUTRIDER_APPS_INTERRUPT_H_

#include <atomic>
#include <stdexcept>

namespace outrider::cli {

// Thrown where there is nothing to show yet, while a model loads. The exit status is 130.
class Interrupted : public std::runtime_error {
 public:
  Interrupted() : std::runtime_error("interrupted") {}
};

// Catches both while it lives; one at a time. System calls that wait are interrupted (EINTR).
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  bool raised() const;           // by a signal since the last reset(), or by SIGTERM ever
  void throw_if_raised() const;  // Interrupted
  void stop();                   // ends the text as a signal would, but raised() stays false
  void reset();                  // forget what was asked for, but SIGTERM
  static bool must_end();        // SIGTERM has come: nothing new is to be begun
  // SIGTERM was a request like any other, and has been met: the exit status is the command's own.
  static void settle();
  const std::atomic<bool>* flag();  // for GenerateOptions::cancel
};

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_INTERRUPT_H_
