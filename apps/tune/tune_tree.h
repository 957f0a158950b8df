// SPDX-License-Identifier: Apache-2.0
// outrider tune tree: finds the draft tree that gains most on this machine.
#ifndef OUTRIDER_APPS_TUNE_TUNE_TREE_H_
#define OUTRIDER_APPS_TUNE_TUNE_TREE_H_

#include <CLI/CLI.hpp>

#include "apps/commands.h"

namespace outrider::cli {

CLI::App* add_tune_tree(CLI::App& tune, Run& run);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_TUNE_TUNE_TREE_H_
