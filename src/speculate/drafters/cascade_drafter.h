// Three models in a row: what the middle one, judging the smallest one's drafts by a rule, lets
// stand is the draft that the target judges.
#ifndef OUTRIDER_SPECULATE_DRAFTERS_CASCADE_DRAFTER_H_
#define OUTRIDER_SPECULATE_DRAFTERS_CASCADE_DRAFTER_H_

#include <span>
#include <string>

#include "speculate/drafter_plan.h"

namespace outrider {

// "cascade:RULE+model:PATH+B": a StagedDrafter (staged_drafter.h) whose inner loop has a rule. With
// T the rule's map, the model's distribution m and the drafter B's b at a prefix, a draft's tokens
// have the law T(b, m), which is what is recorded of them: a function of the prefix, so that a rule
// of the outer loop is followed exactly, too (Narasimhan et al. 2024 put one rule between two
// models; this is that rule twice). The rule `exact` makes it staged speculation. Raw
// distributions, which outer decisions to defer look at, are the model's own: the larger of the two
// that draft.
//
// Throws UsageError for other than three parts, and for what has no law that is a function of the
// prefix: a drafter B without distributions under a rule that needs them, or made of others; a rule
// with bonus=target or a budget for the whole text; typical and bild.
DrafterPlan read_cascade_drafter(std::span<const std::string> parts);

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_CASCADE_DRAFTER_H_
