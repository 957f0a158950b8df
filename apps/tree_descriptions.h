// The shapes of a draft in words: what `outrider trees` prints.
#ifndef OUTRIDER_APPS_TREE_DESCRIPTIONS_H_
#define OUTRIDER_APPS_TREE_DESCRIPTIONS_H_

#include <vector>

#include "outrider/spec_description.h"

namespace outrider::cli {

// What --tree takes, in the order of docs/drafters.md behind "auto" and "own".
std::vector<SpecDescription> known_trees();

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_TREE_DESCRIPTIONS_H_
