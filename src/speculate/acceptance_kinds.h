// The acceptances of their own, which follow no rule: what makes each, and what people read about
// it.
#ifndef OUTRIDER_SPECULATE_ACCEPTANCE_KINDS_H_
#define OUTRIDER_SPECULATE_ACCEPTANCE_KINDS_H_

#include <vector>

#include "speculate/rule_registry.h"

namespace outrider {

// In the order of the documentation. They stand behind all others in rule_kinds().
std::vector<RuleKind> acceptance_kinds();

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_ACCEPTANCE_KINDS_H_
