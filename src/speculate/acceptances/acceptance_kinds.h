// SPDX-License-Identifier: Apache-2.0
// The acceptances that follow no rule: their makers and descriptions.
#ifndef OUTRIDER_SPECULATE_ACCEPTANCES_ACCEPTANCE_KINDS_H_
#define OUTRIDER_SPECULATE_ACCEPTANCES_ACCEPTANCE_KINDS_H_

#include <vector>

#include "speculate/rules/rule_registry.h"

namespace outrider {

// In the order of the documentation. They come last in rule_kinds().
std::vector<RuleKind> acceptance_kinds();

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_ACCEPTANCES_ACCEPTANCE_KINDS_H_
