// From a rule spec to what judges drafts.
#ifndef OUTRIDER_SPECULATE_MAKE_RULE_H_
#define OUTRIDER_SPECULATE_MAKE_RULE_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "speculate/acceptance.h"

namespace outrider {

// An acceptance and what its rule asks for besides.
struct Judging {
  std::unique_ptr<Acceptance> acceptance;
  std::string rule;        // its name
  double draft_until = 0;  // drafts end after the first token with a lower raw probability
};

// The rule of a spec. Throws as make_judging does, and UsageError for names that follow no rule of
// their own (typical, bild).
std::shared_ptr<const Rule> make_rule(const std::string& rule);

// `rule` is a spec (docs/cascades.md lists them), `verify` one of exact, block, traversal
// and coupled. Throws UsageError for what cannot be meant, listing what can; Error for a router's
// file that cannot be read.
Judging make_judging(const std::string& rule, const std::string& verify);

// Every name that a rule spec may begin with, in the order of the documentation.
std::vector<std::string_view> rule_names();

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_MAKE_RULE_H_
