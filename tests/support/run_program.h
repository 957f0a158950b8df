// SPDX-License-Identifier: Apache-2.0
// Runs the built program as a shell would: arguments in, exit status and both output streams out.
#ifndef OUTRIDER_TESTS_SUPPORT_RUN_PROGRAM_H_
#define OUTRIDER_TESTS_SUPPORT_RUN_PROGRAM_H_

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace outrider::test {

struct ProgramRun {
  int status = -1;  // exit status; 128 + number after a signal, as in shells
  std::string out;
  std::string err;
};

struct ProgramInput {
  std::string program = {};  // another program, such as a shell; empty: OUTRIDER_PROGRAM
  std::string standard_input = {};
  // Send SIGINT once: after `interrupt_after`, at the first byte of output, or as soon as
  // `interrupt_when` holds, which gets what the program has written so far.
  std::optional<std::chrono::milliseconds> interrupt_after = {};
  bool interrupt_at_output = false;
  std::function<bool(const ProgramRun&)> interrupt_when = {};
  bool close_output_at_start = false;       // standard output is closed before the program begins
  bool close_output_at_first_byte = false;  // its reader closes it in mid-text
};

// Runs the program with these arguments and waits for its end. Throws std::runtime_error if it
// cannot be started.
ProgramRun run_program(const std::vector<std::string>& arguments, const ProgramInput& input = {});

// The path of an installed program: the first of that name in the folders of PATH. Empty if there
// is none.
std::string installed_program(const std::string& name);

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_RUN_PROGRAM_H_
