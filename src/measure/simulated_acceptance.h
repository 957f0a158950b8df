// SPDX-License-Identifier: Apache-2.0
// A check of the simulation.
#ifndef OUTRIDER_MEASURE_SIMULATED_ACCEPTANCE_H_
#define OUTRIDER_MEASURE_SIMULATED_ACCEPTANCE_H_

#include <span>
#include <string>

#include "outrider/types.h"

namespace outrider {

// Throws Error with the first position where ids differ from plain decoding's: the speed of another
// text would be meaningless. tree: of the drafts; empty if there were none.
void require_plain_text(std::span<const TokenId> ids, std::span<const TokenId> plain,
                        const std::string& tree);

}  // namespace outrider

#endif  // OUTRIDER_MEASURE_SIMULATED_ACCEPTANCE_H_
