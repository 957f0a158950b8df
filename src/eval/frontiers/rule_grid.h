// SPDX-License-Identifier: Apache-2.0
// The settings of a frontier: rules, each at several values of its parameter.
#ifndef OUTRIDER_EVAL_FRONTIERS_RULE_GRID_H_
#define OUTRIDER_EVAL_FRONTIERS_RULE_GRID_H_

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace outrider::eval {

// One rule at one value.
struct RuleSetting {
  std::string rule;    // its spec, "lossy:beta=auto,alpha=0.3"
  std::string family;  // the spec without the value: one curve of the frontier, "lossy:beta=auto"
  std::string parameter;  // the key of the value, "alpha"; empty for rules without one
  std::optional<double> value = std::nullopt;
};

// The settings of a list of rule specs ("chow,lossy:alpha=0.1|0.5,beta=auto,budget"). A number in a
// spec may be several, separated by '|', for one key in a spec. If the rule's frontier key (alpha;
// lenience: eps; budget: kl; router: threshold) is missing, it takes `alphas`; if these are empty
// or the key is not alpha, values that span the rule's range. Every setting is checked as `--rule`
// checks it: throws UsageError for an unknown rule and for a value out of range, Error for a router
// that cannot be read. Duplicate settings are dropped.
std::vector<RuleSetting> expand_rules(std::string_view list, std::span<const double> alphas);

}  // namespace outrider::eval

#endif  // OUTRIDER_EVAL_FRONTIERS_RULE_GRID_H_
