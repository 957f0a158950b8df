// SPDX-License-Identifier: Apache-2.0
#include "speculate/rules/make_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/spec.h"
#include "outrider/error.h"
#include "speculate/rules/rule_registry.h"
#include "speculate/rules/target_bonus.h"

namespace outrider {
namespace {

constexpr const char* kOperation = "read rule";

std::unique_ptr<Acceptance> make_acceptance(std::shared_ptr<const Rule> rule,
                                            const std::string& verify) {
  if (verify == "exact") return make_multi_round(std::move(rule));
  if (verify == "block") return make_block(std::move(rule));
  if (verify == "traversal") return make_traversal(std::move(rule));
  if (verify == "coupled") return make_coupled(std::move(rule));
  throw UsageError("read verify", verify, "one of exact, block, traversal, coupled", verify);
}

// Names of the acceptances that follow a rule.
std::vector<std::string_view> names_of_rules() {
  std::vector<std::string_view> names;
  names.reserve(rule_kinds().size());
  for (const RuleKind& kind : rule_kinds()) {
    if (kind.make != nullptr) names.emplace_back(kind.description.name);
  }
  return names;
}

// Finds and checks a spec's kind. Throws UsageError for a name that is not among these.
const RuleKind& kind_of(const Spec& spec, const std::string& rule,
                        const std::vector<std::string_view>& names) {
  if (std::find(names.begin(), names.end(), spec.name()) == names.end()) {
    throw UsageError(kOperation, rule, fmt::format("one of {}", fmt::join(names, ", ")),
                     spec.name());
  }
  const std::span<const RuleKind> kinds = rule_kinds();
  const auto kind = std::find_if(kinds.begin(), kinds.end(), [&spec](const RuleKind& one) {
    return one.description.name == spec.name();
  });
  spec.require_no_value();
  spec.require_described_keys(kind->description.keys);
  return *kind;
}

std::shared_ptr<const Rule> make_rule(const RuleKind& kind, const Spec& spec,
                                      const FindToken& find) {
  const auto bonus = spec.choice("bonus", {"rule", "target"});
  const bool by_target = bonus ? *bonus == "target" : kind.target_bonus;
  std::unique_ptr<const Rule> rule =
      kind.make != nullptr ? kind.make(spec) : kind.make_marked(spec, find);
  if (by_target) return std::make_shared<TargetBonus>(std::move(rule));
  return rule;
}

}  // namespace

std::vector<std::string_view> rule_names() {
  std::vector<std::string_view> names;
  names.reserve(rule_kinds().size());
  for (const RuleKind& kind : rule_kinds()) names.emplace_back(kind.description.name);
  return names;
}

std::shared_ptr<const Rule> make_rule(const std::string& rule) {
  const std::vector<std::string_view> known = names_of_rules();
  const Spec spec = Spec::parse("rule", rule);
  for (const RuleKind& kind : rule_kinds()) {
    if (kind.make != nullptr || spec.name() != kind.description.name) continue;
    throw UsageError(kOperation, rule,
                     fmt::format("a rule that says what is emitted at every position (one of {})",
                                 fmt::join(known, ", ")),
                     fmt::format("{}, which {}", spec.name(),
                                 kind.make_marked != nullptr ? "reads marks in the text"
                                                             : "judges whole drafts"));
  }
  return make_rule(kind_of(spec, rule, known), spec, {});
}

Verification make_verification(const std::string& rule, const std::string& verify,
                               const FindToken& find) {
  const Spec spec = Spec::parse("rule", rule);
  const RuleKind& kind = kind_of(spec, rule, rule_names());
  if (kind.make_acceptance != nullptr) {
    if (verify != "exact") {
      throw UsageError("read verify", verify, fmt::format("exact with the rule {}", spec.name()),
                       verify);
    }
    return kind.make_acceptance(spec);
  }
  return {.acceptance = make_acceptance(make_rule(kind, spec, find), verify), .rule = spec.name()};
}

}  // namespace outrider
