// SPDX-License-Identifier: Apache-2.0
// Flags for the choice of mask rows in training.
#ifndef OUTRIDER_APPS_TRAINER_MASK_ROW_FLAGS_H_
#define OUTRIDER_APPS_TRAINER_MASK_ROW_FLAGS_H_

#include <CLI/CLI.hpp>
#include <string>

#include "train/batches/mask_choice.h"

namespace outrider::cli {

// --keep and --least-share.
void add_mask_row_flags(CLI::App& command, train::MaskChoice& rows, const std::string& group);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_TRAINER_MASK_ROW_FLAGS_H_
