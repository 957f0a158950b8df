// The frame around every program's commands: turns every error into one line on standard error and
// an exit status.
#ifndef OUTRIDER_APPS_ENTRY_H_
#define OUTRIDER_APPS_ENTRY_H_

#include <CLI/CLI.hpp>
#include <string_view>

namespace outrider::cli {

// Thrown by a process that exits with this status and prints nothing, because another process
// prints the message.
struct QuietExit {
  int status = 0;
};

// Runs `run_program` as the program `name`, which begins every message. Returns the exit status.
int enter(const char* name, int argc, char** argv, int (*run_program)(int, char**));

// One line on standard error; returns `status`.
int fail(int status, std::string_view message);

// Parses the command line. "--name=" sets --name to the empty text, as --name "" does; CLI11 alone
// would take the next word as the value. Throws the exceptions of CLI11 and of the flags.
void parse(CLI::App& program, int argc, const char* const* argv);

// Prints an error of CLI11: its words, in the format of all messages.
int fail_usage(const CLI::App& program, const CLI::ParseError& error);
// Writes the chosen command's help: its usual flags with Normal, all flags with All. A preceding
// word that is not a command is a usage error.
int show_help(const CLI::App& program, CLI::AppFormatMode mode);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_ENTRY_H_
