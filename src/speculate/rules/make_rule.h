// SPDX-License-Identifier: Apache-2.0
// Makes the acceptance of a rule spec.
#ifndef OUTRIDER_SPECULATE_RULES_MAKE_RULE_H_
#define OUTRIDER_SPECULATE_RULES_MAKE_RULE_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "outrider/types.h"
#include "speculate/acceptances/acceptance.h"

namespace outrider {

// Finds a token of the target's vocabulary by its spelling there.
using FindToken = std::function<std::optional<TokenId>(std::string_view spelling)>;

// An acceptance and what its rule needs besides.
struct Verification {
  std::unique_ptr<Acceptance> acceptance;
  std::string rule;        // its name
  double draft_until = 0;  // drafts end after the first token with a lower raw probability
};

// The rule of a spec. Throws as make_verification does. Throws UsageError also for acceptances
// without a rule (typical, bild, fly) and for rules that read marks in the text (relaxed): neither
// is a function of the distributions at a position alone.
std::shared_ptr<const Rule> make_rule(const std::string& rule);

// `rule` is a spec (docs/cascades.md lists them), `verify` one of exact, block, traversal and
// coupled. `find` may be empty to check a spec without a vocabulary; a rule that reads marks in the
// text then finds none. Throws UsageError for invalid specs (with the valid ones) and for marks
// that the vocabulary lacks; Error for a router's file that cannot be read.
Verification make_verification(const std::string& rule, const std::string& verify,
                               const FindToken& find = {});

// All names that a rule spec may begin with, in the order of the documentation.
std::vector<std::string_view> rule_names();

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_RULES_MAKE_RULE_H_
