// SPDX-License-Identifier: Apache-2.0
#include "speculate/drafters/composite/cascade_drafter.h"

#include <fmt/format.h>

#include <memory>
#include <string_view>
#include <utility>

#include "outrider/error.h"
#include "speculate/drafters/composite/staged_drafter.h"
#include "speculate/registry/drafter_registry.h"
#include "speculate/rules/make_rule.h"

namespace outrider {
namespace {

constexpr const char* kForm = "cascade:RULE+model:PATH+B";

[[noreturn]] void refuse(std::string_view expected, std::string_view got) {
  throw UsageError("read drafter", "cascade", expected, got);
}

// Refuses rules that would make the drafts' distribution depend on where a round began.
void require_function_of_prefix(const Rule& rule, const std::string& spec) {
  const RuleNeeds needs = rule.needs();
  if (needs.greedy) refuse("a rule that means something at every temperature", spec);
  if (needs.draft_prob && !needs.leaf_draft) {
    refuse("a rule with bonus=rule between the models that draft", spec);
  }
  if (needs.past_cost) refuse("a rule without a budget for the whole text", spec);
}

void require_fitting_drafter(const Rule& rule, const DrafterPlan& cheaper,
                             const std::string& spec) {
  const std::string_view name = std::string_view(spec).substr(0, spec.find(':'));
  // The keys of inner draws have bits for one level of nesting only (staged_drafter.cc).
  if (name == "staged" || name == "cascade") refuse("a drafter that has none of its own", spec);
  if (cheaper.traits.reads_features) {
    refuse("a cheaper drafter that reads no features of the target", spec);
  }
  const bool fits = cheaper.traits.has_draft_prob && cheaper.traits.prefix_determined;
  if (rule.needs().draft_prob && !fits) {
    refuse(fmt::format("with the rule {} a drafter whose distributions follow from the prefix "
                       "alone, model:PATH for one",
                       rule.name()),
           spec);
  }
}

}  // namespace

DrafterPlan read_cascade_drafter(std::span<const std::string> parts) {
  if (parts.size() != 3) {
    refuse(fmt::format("{}, three parts", kForm), fmt::format("{}", parts.size()));
  }
  std::shared_ptr<const Rule> rule = make_rule(parts[0]);
  require_function_of_prefix(*rule, parts[0]);
  const StagedModel model = read_staged_model(parts[1], "cascade", kForm);
  const DrafterPlan cheaper = read_drafter(parts[2]);
  refuse_updates(cheaper, "cascade");
  require_fitting_drafter(*rule, cheaper, parts[2]);
  return plan_staged(model, cheaper, "cascade", std::move(rule));
}

}  // namespace outrider
