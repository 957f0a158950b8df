// outrider-train: the separate program behind `outrider train lm` and its like. It is one of its
// own because libtorch and SentencePiece must not meet in one process: each brings its own
// protobuf.
#ifndef OUTRIDER_APPS_TRAINER_PROGRAM_H_
#define OUTRIDER_APPS_TRAINER_PROGRAM_H_

#include <span>
#include <string>
#include <string_view>

namespace outrider::cli {

// What can be trained there, in the order of the help.
struct TrainerCommand {
  std::string_view name;
  std::string_view description;
};
std::span<const TrainerCommand> trainer_commands();

// If the words of the command line are "train" and one of trainer_commands(), this process becomes
// outrider-train with the words behind "train" as they stand, and the call does not return: signals
// and exit status are the other program's own. It is looked for beside this program's file, then in
// PATH. Throws Error if it is in neither or cannot be started. Any other words: returns.
void hand_over_to_trainer(int argc, char** argv);

// What outrider-train writes to standard output when it is run with this one word; empty if there
// is no such program, or it fails.
std::string trainer_output(const std::string& word);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_TRAINER_PROGRAM_H_
