// SPDX-License-Identifier: Apache-2.0
// The drafters that are made of other drafters: their readers and descriptions.
#ifndef OUTRIDER_SPECULATE_DRAFTERS_COMPOSITE_COMPOSITE_KINDS_H_
#define OUTRIDER_SPECULATE_DRAFTERS_COMPOSITE_COMPOSITE_KINDS_H_

#include <vector>

#include "speculate/registry/drafter_registry.h"

namespace outrider {

// In the order of the documentation. They come last in drafter_kinds().
std::vector<DrafterKind> composite_kinds();

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_COMPOSITE_COMPOSITE_KINDS_H_
