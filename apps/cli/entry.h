// SPDX-License-Identifier: Apache-2.0
// The frame around every program's commands: turns every error into one line on standard error and
// an exit status.
#ifndef OUTRIDER_APPS_CLI_ENTRY_H_
#define OUTRIDER_APPS_CLI_ENTRY_H_

#include <CLI/CLI.hpp>
#include <string_view>

namespace outrider::cli {

// Runs `run_program` as the program `name`, which begins every message. Returns the exit status.
int enter(const char* name, int argc, char** argv, int (*run_program)(int, char**));

// One line on standard error; returns `status`.
int fail(int status, std::string_view message);
// Prints the same line at once, on any of several processes (speak_after_the_first).
void print_error(std::string_view message);

// Declares that this process is not the first of several that run the same command line: fail()
// waits for two seconds and names it. Usually the first process has reported the same error
// meanwhile, and its exit status has made the launcher end this one. An error of this process alone
// is still reported.
void speak_after_the_first(int rank);

// Reads the command line. "--name=" gives --name the empty text, as --name "" does; CLI11 by itself
// would take the next word, whatever it is. Throws what CLI11 and the flags throw.
void parse(CLI::App& program, int argc, const char* const* argv);

// Prints an error of CLI11: its words, in the format of all messages.
int fail_usage(const CLI::App& program, const CLI::ParseError& error);
// Writes the chosen command's help: its usual flags with Normal, all flags with All. A preceding
// word that is not a command is a usage error.
int show_help(const CLI::App& program, CLI::AppFormatMode mode);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_CLI_ENTRY_H_
