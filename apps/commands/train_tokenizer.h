// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_APPS_COMMANDS_TRAIN_TOKENIZER_H_
#define OUTRIDER_APPS_COMMANDS_TRAIN_TOKENIZER_H_

#include <CLI/CLI.hpp>

#include "apps/commands.h"

namespace outrider::cli {

// `outrider train tokenizer`: adds the command to `train`, as the functions of commands.h do.
CLI::App* add_train_tokenizer(CLI::App& train, Run& run);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_COMMANDS_TRAIN_TOKENIZER_H_
