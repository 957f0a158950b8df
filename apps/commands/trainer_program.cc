// SPDX-License-Identifier: Apache-2.0
#include "apps/commands/trainer_program.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "outrider/error.h"

namespace outrider::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kProgram = "outrider-train";
constexpr int kCannotRun = 127;  // the shells' value

constexpr TrainerCommand kCommands[] = {
    {"lm", "A language model, from text"},
    {"distill", "A drafter, from a target's probabilities"},
    {"eagle", "A drafter that reads a target's features"},
    {"dflash", "A drafter of a block a pass, which reads a target's features"},
    {"dspark", "The same, with tokens that follow one another"},
    {"medusa", "Heads that guess several tokens ahead of a target"},
    {"mtp", "Modules for multi-token prediction, on a target that stays as it is"},
    {"pard", "A small model that drafts several tokens a pass, from a model and text"},
    {"online", "A drafter, from what its target has said in use"},
    {"seq2seq", "An encoder-decoder of the T5 v1.1 kind, from pairs of texts"},
    {"router", "When to trust the drafter: the learnt deferral of a cascade"},
};

bool is_program(const fs::path& file) {
  std::error_code ignored;
  return fs::is_regular_file(file, ignored) && ::access(file.c_str(), X_OK) == 0;
}

// Empty if there is none.
fs::path find_trainer() {
  std::error_code failed;
  const fs::path self = fs::read_symlink("/proc/self/exe", failed);
  if (!failed && is_program(self.parent_path() / kProgram)) return self.parent_path() / kProgram;
  const char* const path = std::getenv("PATH");
  std::string_view folders = path == nullptr ? "" : path;
  while (!folders.empty()) {
    const std::string_view folder = folders.substr(0, folders.find(':'));
    folders.remove_prefix(std::min(folders.size(), folder.size() + 1));
    if (!folder.empty() && is_program(fs::path(folder) / kProgram)) {
      return fs::path(folder) / kProgram;
    }
  }
  return {};
}

}  // namespace

std::span<const TrainerCommand> trainer_commands() { return kCommands; }

void hand_over_to_trainer(int argc, char** argv) {
  if (argc < 3 || std::string_view(argv[1]) != "train") return;
  const std::string_view what = argv[2];
  if (std::none_of(std::begin(kCommands), std::end(kCommands),
                   [what](const TrainerCommand& command) { return command.name == what; })) {
    return;
  }
  const std::string operation = fmt::format("train {}", what);
  const fs::path trainer = find_trainer();
  if (trainer.empty()) {
    throw Error(operation, kProgram,
                "this program beside outrider or in PATH (scripts/install-deps train, then build)",
                "none");
  }
  std::string name = kProgram;
  std::vector<char*> words = {name.data()};
  words.insert(words.end(), argv + 2, argv + argc);
  words.push_back(nullptr);
  // A program inherits ignored signals; enter() ignored these for this one.
  for (const int signal : {SIGPIPE, SIGXFSZ}) std::signal(signal, SIG_DFL);
  ::execv(trainer.c_str(), words.data());
  throw Error(operation, trainer.string(), std::strerror(errno));
}

std::string trainer_output(const std::string& word) {
  const std::string trainer = find_trainer().string();
  int ends[2];
  if (trainer.empty() || ::pipe(ends) != 0) return {};
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::close(ends[0]);
    ::close(ends[1]);
    ::execl(trainer.c_str(), kProgram, word.c_str(), static_cast<char*>(nullptr));
    ::_exit(kCannotRun);
  }
  ::close(ends[1]);
  std::string output;
  std::array<char, 4096> buffer;
  for (;;) {
    const ssize_t n = ::read(ends[0], buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    output.append(buffer.data(), static_cast<std::size_t>(n));
  }
  ::close(ends[0]);
  int status = -1;
  while (child > 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? output : std::string();
}

}  // namespace outrider::cli
