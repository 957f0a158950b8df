// SPDX-License-Identifier: Apache-2.0
// Commands that run one model over several processes (docs/scale.md).
#ifndef OUTRIDER_APPS_RUN_ON_RANKS_H_
#define OUTRIDER_APPS_RUN_ON_RANKS_H_

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>

#include "apps/commands.h"
#include "apps/flags/model_flags.h"
#include "outrider/ranks.h"

namespace outrider::cli {

// Allows the command to run on several ranks with that model, and adds --rank-timeout. read:
// interprets flags and refuses some of them on several ranks; called after parsing and before the
// model's flags are checked; may be null.
void allow_ranks(CLI::App& command, ModelFlags& flags, std::function<void()> read = nullptr);

// Runs the chosen command. In one process it runs normally. In several, the first process runs it
// and the others serve their parts of its model. Commands without allow_ranks() are refused there.
int run_as_launched(const CLI::App& command, const Run& run);

// The ranks to give to load_model() of such a command; null in one process.
std::shared_ptr<Ranks> ranks_in_use();

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_RUN_ON_RANKS_H_
