// SPDX-License-Identifier: Apache-2.0
// outrider tune layers: finds the layers to skip when a target drafts for itself.
#ifndef OUTRIDER_APPS_TUNE_TUNE_LAYERS_H_
#define OUTRIDER_APPS_TUNE_TUNE_LAYERS_H_

#include <CLI/CLI.hpp>

#include "apps/commands.h"

namespace outrider::cli {

CLI::App* add_tune_layers(CLI::App& tune, Run& run);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_TUNE_TUNE_LAYERS_H_
