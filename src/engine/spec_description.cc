// SPDX-License-Identifier: Apache-2.0
#include "outrider/spec_description.h"

#include "speculate/registry/drafter_registry.h"
#include "speculate/rules/rule_registry.h"

namespace outrider {

std::vector<SpecDescription> known_drafters() {
  std::vector<SpecDescription> known;
  known.reserve(drafter_kinds().size());
  for (const DrafterKind& kind : drafter_kinds()) known.push_back(kind.description);
  return known;
}

std::vector<SpecDescription> known_rules() {
  std::vector<SpecDescription> known;
  known.reserve(rule_kinds().size());
  for (const RuleKind& kind : rule_kinds()) known.push_back(kind.description);
  return known;
}

}  // namespace outrider
