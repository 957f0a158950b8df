// SPDX-License-Identifier: Apache-2.0
// The subcommands of `outrider-train`, one source file each.
#ifndef OUTRIDER_APPS_TRAINER_TRAIN_COMMANDS_H_
#define OUTRIDER_APPS_TRAINER_TRAIN_COMMANDS_H_

#include "apps/commands.h"

namespace outrider::cli {

CLI::App* add_train_lm(CLI::App& program, Run& run);
CLI::App* add_train_distill(CLI::App& program, Run& run);
CLI::App* add_train_eagle(CLI::App& program, Run& run);
CLI::App* add_train_dflash(CLI::App& program, Run& run);
CLI::App* add_train_dspark(CLI::App& program, Run& run);
CLI::App* add_train_medusa(CLI::App& program, Run& run);
CLI::App* add_train_mtp(CLI::App& program, Run& run);
CLI::App* add_train_pard(CLI::App& program, Run& run);
CLI::App* add_train_online(CLI::App& program, Run& run);
CLI::App* add_train_seq2seq(CLI::App& program, Run& run);
CLI::App* add_train_router(CLI::App& program, Run& run);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_TRAINER_TRAIN_COMMANDS_H_
