// SPDX-License-Identifier: Apache-2.0
// The registry of rules: their makers and descriptions.
#ifndef OUTRIDER_SPECULATE_RULES_RULE_REGISTRY_H_
#define OUTRIDER_SPECULATE_RULES_RULE_REGISTRY_H_

#include <memory>
#include <span>
#include <string_view>

#include "base/spec.h"
#include "outrider/spec_description.h"
#include "speculate/rule.h"
#include "speculate/rules/make_rule.h"

namespace outrider {

// Makers throw UsageError for invalid values, and Error for files that cannot be read. They receive
// specs with described keys only.
struct RuleKind {
  SpecDescription description;
  std::unique_ptr<const Rule> (*make)(const Spec& spec) = nullptr;
  // Instead of `make`, for rules that read marks in the text. `find` is empty to check a spec
  // without a vocabulary. Throws UsageError for tokens that the vocabulary lacks.
  std::unique_ptr<const Rule> (*make_marked)(const Spec& spec, const FindToken& find) = nullptr;
  // Instead of both, for acceptances without a rule, which verify in one way only.
  Verification (*make_acceptance)(const Spec& spec) = nullptr;
  bool target_bonus = false;  // bonus=target unless the spec says otherwise
};

// In the order of the documentation. Those that follow a rule come first.
std::span<const RuleKind> rule_kinds();

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_RULES_RULE_REGISTRY_H_
