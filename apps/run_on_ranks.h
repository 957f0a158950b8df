// Commands that run one model over several processes (docs/scale.md).
#ifndef OUTRIDER_APPS_RUN_ON_RANKS_H_
#define OUTRIDER_APPS_RUN_ON_RANKS_H_

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>

#include "commands.h"
#include "model_flags.h"
#include "outrider/ranks.h"

namespace outrider::cli {

// The command may run on several ranks, with that model, and gets --rank-timeout. read: what flags
// mean, and which of them are refused there, behind parsing and before the model's flags are looked
// at; may be null.
void allow_ranks(CLI::App& command, ModelFlags& flags, std::function<void()> read = nullptr);

// Runs a command that was chosen: as it is in one process. Of several the first one runs it, and
// the others follow with their parts of its model. Commands that are not allowed there are refused.
int run_as_launched(const CLI::App& command, const Run& run);

// What load_model() of such a command is to be given; null in one process.
std::shared_ptr<Ranks> ranks_in_use();

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_RUN_ON_RANKS_H_
