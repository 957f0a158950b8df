// The rules there are: what makes each from its spec, and what people read about it.
#ifndef OUTRIDER_SPECULATE_RULE_REGISTRY_H_
#define OUTRIDER_SPECULATE_RULE_REGISTRY_H_

#include <memory>
#include <span>
#include <string_view>

#include "base/spec.h"
#include "outrider/spec_description.h"
#include "speculate/make_rule.h"
#include "speculate/rule.h"

namespace outrider {

// Makers throw UsageError for values that cannot be meant, Error for files that cannot be read.
// They get specs that have described keys alone.
struct RuleKind {
  SpecDescription description;
  std::unique_ptr<const Rule> (*make)(const Spec& spec) = nullptr;
  // Instead of `make`, for rules that read marks in the text; without a vocabulary (`find` is
  // empty) for a look at the spec alone. Throws UsageError for tokens that the vocabulary lacks.
  std::unique_ptr<const Rule> (*make_marked)(const Spec& spec, const FindToken& find) = nullptr;
  // Instead of both, for acceptances of their own. They judge a draft in their one way.
  Judging (*make_acceptance)(const Spec& spec) = nullptr;
  bool target_bonus = false;  // bonus=target where the spec does not say
};

// In the order of the documentation. Those that follow a rule come first.
std::span<const RuleKind> rule_kinds();

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_RULE_REGISTRY_H_
