// SPDX-License-Identifier: Apache-2.0
// outrider-train: the separate program that runs `outrider train lm` and similar commands. It is
// separate because libtorch and SentencePiece cannot share a process: each contains its own
// protobuf.
#ifndef OUTRIDER_APPS_COMMANDS_TRAINER_PROGRAM_H_
#define OUTRIDER_APPS_COMMANDS_TRAINER_PROGRAM_H_

#include <span>
#include <string>
#include <string_view>

namespace outrider::cli {

// The training commands, in the order of the help.
struct TrainerCommand {
  std::string_view name;
  std::string_view description;
};
std::span<const TrainerCommand> trainer_commands();

// If the command line is "train" and one of trainer_commands(), this process becomes outrider-train
// with the words after "train", and the call does not return. Signals and exit status are then that
// program's. The program is searched beside this program's file, then in PATH. Throws Error if it
// is not found or cannot be started. For any other command line it returns.
void hand_over_to_trainer(int argc, char** argv);

// The standard output of outrider-train when run with this one word; empty if there is no such
// program, or it fails.
std::string trainer_output(const std::string& word);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_COMMANDS_TRAINER_PROGRAM_H_
