// SPDX-License-Identifier: Apache-2.0
// A cascade of three models: the middle one judges the smallest one's drafts by a rule, and the
// accepted tokens are the draft for the target.
#ifndef OUTRIDER_SPECULATE_DRAFTERS_COMPOSITE_CASCADE_DRAFTER_H_
#define OUTRIDER_SPECULATE_DRAFTERS_COMPOSITE_CASCADE_DRAFTER_H_

#include <span>
#include <string>

#include "speculate/registry/drafter_plan.h"

namespace outrider {

// "cascade:RULE+model:PATH+B": a StagedDrafter (staged_drafter.h) whose inner loop has a rule. With
// the rule's map T, the model's distribution m and that of drafter B, b, at a prefix, the draft's
// tokens have the distribution T(b, m), which is recorded. It is a function of the prefix, so a
// rule of the outer loop is exact, too. (Narasimhan et al. 2024 put one rule between two models;
// this applies it twice.) With the rule `exact` it is staged speculation. Raw distributions, which
// outer deferral decisions use, are the middle model's.
//
// Throws UsageError unless there are three parts. Throws also where T(b, m) would not be a function
// of the prefix: a drafter B that is a composite or lacks distributions that the rule needs; a rule
// with bonus=target or a budget for the whole text; typical and bild.
DrafterPlan read_cascade_drafter(std::span<const std::string> parts);

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_COMPOSITE_CASCADE_DRAFTER_H_
