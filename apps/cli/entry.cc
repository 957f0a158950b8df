// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/entry.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "apps/cli/bus_error.h"
#include "apps/cli/interrupt.h"
#include "apps/cli/terminal.h"
#include "apps/commands.h"
#include "outrider/error.h"

namespace outrider::cli {
namespace {

std::string program_name;
int speaking_rank = 0;

// If the caller closed a standard descriptor, the next opened file must not get its number: output
// would be written into it. Standard output becomes a descriptor that cannot be written, so that
// the failure is noticed.
void keep_standard_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(descriptor, F_GETFD) != -1) continue;
    // open() returns the lowest free descriptor: the one found closed.
    const int opened = ::open("/dev/null", descriptor == STDERR_FILENO ? O_WRONLY : O_RDONLY);
    if (opened < 0) return;
  }
}

}  // namespace

void speak_after_the_first(int rank) { speaking_rank = rank; }

int fail(int status, std::string_view message) {
  constexpr std::chrono::seconds kTurnOfTheFirst(2);
  if (speaking_rank > 0) std::this_thread::sleep_for(kTurnOfTheFirst);
  print_error(message);
  return status;
}

void print_error(std::string_view message) {
  // The library's own messages are shorter; messages of CLI11 and the standard library quote input
  // without a limit.
  constexpr std::size_t kLongest_bytes = 950;
  std::string text = one_line(message);
  if (text.size() > kLongest_bytes) {
    std::size_t end = kLongest_bytes;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
    text = text.substr(0, end) + "...";
  }
  const std::string rank = speaking_rank > 0 ? fmt::format("rank {}: ", speaking_rank) : "";
  const std::string line = fmt::format("{}: {}{}\n", program_name, rank, text);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

namespace {

// The program and the chosen commands, outermost first.
std::vector<const CLI::App*> chosen_of(const CLI::App& program) {
  std::vector<const CLI::App*> chosen = {&program};
  while (!chosen.back()->get_subcommands().empty()) {
    chosen.push_back(chosen.back()->get_subcommands().back());
  }
  return chosen;
}

// How many words CLI11 takes after `name`, whatever they are; 0 if `app` has no such flag.
int n_values_of(const CLI::App& app, const std::string& name) {
  const CLI::Option* const option = app.get_option_no_throw(name);
  return option == nullptr ? 0 : std::max(option->get_items_expected_min(), 0);
}

// The command with that name in `app`, or `app` itself.
const CLI::App* enter_command(const CLI::App* app, const std::string& name) {
  const std::vector<const CLI::App*> found =
      app->get_subcommands([&name](const CLI::App* one) { return one->get_name() == name; });
  return found.empty() ? app : found.front();
}

// The error about the first word in a command's place; empty if there is none.
std::string unknown_command(const std::vector<const CLI::App*>& chosen) {
  for (const CLI::App* app : chosen) {
    const std::vector<const CLI::App*> known =
        app->get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); });
    const std::vector<std::string> rest = app->remaining();
    if (known.empty() || rest.empty() || rest.front().starts_with('-')) continue;
    std::vector<std::string> names;
    names.reserve(known.size());
    for (const CLI::App* one : known) names.push_back(one->get_name());
    return fmt::format("command: expected one of {}, got {}", fmt::join(names, ", "), rest.front());
  }
  return {};
}

int refuse(const std::vector<const CLI::App*>& chosen, const std::string& problem) {
  std::string command = program_name;
  for (std::size_t i = 1; i < chosen.size(); ++i) command += " " + chosen[i]->get_name();
  return fail(kExitUsage, fmt::format("[read flags] {} (see {} --help)", problem, command));
}

// "--prompt: At Most 1 required but received 2", CLI11's message, in our words.
std::string in_our_words(std::string problem) {
  constexpr std::string_view kRuleText = ": At Most ";
  constexpr std::string_view kCame = " required but received ";
  if (const std::size_t at = problem.find(kRuleText); at != std::string::npos) {
    problem.replace(at, kRuleText.size(), ": expected at most ");
    if (const std::size_t came = problem.find(kCame, at); came != std::string::npos) {
      problem.replace(came, kCame.size(), ", got ");
    }
  }
  while (!problem.empty() && (problem.back() == '\n' || problem.back() == '.')) problem.pop_back();
  return problem;
}

}  // namespace

void parse(CLI::App& program, int argc, const char* const* argv) {
  std::vector<std::string> words;
  const CLI::App* app = &program;
  int n_values = 0;  // following words that belong to the flag before
  bool flags_are_over = false;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const std::string name = word.substr(0, word.find('='));
    if (n_values > 0) {
      --n_values;
      words.push_back(word);
    } else if (flags_are_over || !word.starts_with('-')) {
      app = enter_command(app, word);
      words.push_back(word);
    } else if (word == name) {
      flags_are_over = word == "--";
      n_values = n_values_of(*app, name);
      words.push_back(word);
    } else if (word.size() == name.size() + 1 && app->get_option_no_throw(name) != nullptr) {
      if (n_values_of(*app, name) == 0) {
        throw UsageError("read flags", name, "no value", "an empty text");
      }
      n_values = n_values_of(*app, name) - 1;
      words.insert(words.end(), {name, ""});
    } else {
      words.push_back(word);
    }
  }
  std::reverse(words.begin(), words.end());  // the order that CLI11 expects
  program.parse(std::move(words));
}

// CLI11's errors: the words differ between its versions, the format is ours.
int fail_usage(const CLI::App& program, const CLI::ParseError& error) {
  const std::vector<const CLI::App*> chosen = chosen_of(program);
  const std::string problem = unknown_command(chosen);
  return refuse(chosen, problem.empty() ? in_our_words(error.what()) : problem);
}

int show_help(const CLI::App& program, CLI::AppFormatMode mode) {
  const std::vector<const CLI::App*> chosen = chosen_of(program);
  if (const std::string problem = unknown_command(chosen); !problem.empty()) {
    return refuse(chosen, problem);
  }
  Output output;
  output.write(program.help("", mode));
  output.check();
  return 0;
}

namespace {

int run_to_status(int argc, char** argv, int (*run_program)(int, char**)) {
  try {
    return run_program(argc, argv);
  } catch (const OutputClosed&) {
    return kExitError;  // the reader of the output has gone, which is not an error
  } catch (const Interrupted&) {
    return kExitInterrupted;
  } catch (const UsageError& error) {
    return fail(kExitUsage, error.what());
  } catch (const std::bad_alloc&) {
    return fail(kExitError, "[allocate] memory: not enough for this model and context");
  } catch (const std::filesystem::filesystem_error& error) {
    const Error shown("open file", error.path1().string(), error.code().message());
    return fail(kExitError, shown.what());
  } catch (const std::exception& error) {
    return fail(kExitError, error.what());
  } catch (...) {
    return fail(kExitError, "[run] unknown failure");
  }
}

}  // namespace

int enter(const char* name, int argc, char** argv, int (*run_program)(int, char**)) {
  program_name = name;
  keep_standard_descriptors();
  explain_bus_errors(program_name);
  std::signal(SIGPIPE, SIG_IGN);  // a failed write reports that the reader has gone
  std::signal(SIGXFSZ, SIG_IGN);  // and that a file has reached the shell's size limit
  const int status = run_to_status(argc, argv, run_program);
  if (Interrupt::must_end()) {
    // All is cleaned up. The sender sees that the signal ended this program.
    std::fflush(nullptr);
    std::signal(SIGTERM, SIG_DFL);
    ::raise(SIGTERM);
  }
  return status;
}

}  // namespace outrider::cli
