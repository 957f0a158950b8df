// outrider tune: which drafter pays here, and how long its drafts should be.
#ifndef OUTRIDER_APPS_TUNE_COMMAND_H_
#define OUTRIDER_APPS_TUNE_COMMAND_H_

#include <CLI/CLI.hpp>

#include "commands.h"

namespace outrider::cli {

// The flags of `outrider tune` without a command behind it.
void add_tune_drafters(CLI::App& tune, Run& run);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_TUNE_COMMAND_H_
