// SPDX-License-Identifier: Apache-2.0
// outrider tune: measures which drafter gains most on this machine, and with which draft length.
#ifndef OUTRIDER_APPS_TUNE_TUNE_COMMAND_H_
#define OUTRIDER_APPS_TUNE_TUNE_COMMAND_H_

#include <CLI/CLI.hpp>

#include "apps/commands.h"

namespace outrider::cli {

// The flags of `outrider tune` without a subcommand.
void add_tune_drafters(CLI::App& tune, Run& run);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_TUNE_TUNE_COMMAND_H_
