// SPDX-License-Identifier: Apache-2.0
// Descriptions of draft shapes, printed by `outrider trees`.
#ifndef OUTRIDER_APPS_COMMANDS_TREE_DESCRIPTIONS_H_
#define OUTRIDER_APPS_COMMANDS_TREE_DESCRIPTIONS_H_

#include <vector>

#include "outrider/spec_description.h"

namespace outrider::cli {

// The values of --tree, in the order of docs/drafters.md after "auto" and "own".
std::vector<SpecDescription> known_trees();

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_COMMANDS_TREE_DESCRIPTIONS_H_
