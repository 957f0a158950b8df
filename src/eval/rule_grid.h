// The settings of a frontier: rules, each at several values of its parameter.
#ifndef OUTRIDER_EVAL_RULE_GRID_H_
#define OUTRIDER_EVAL_RULE_GRID_H_

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
  std::string parameter;  // what the value belongs to, "alpha"; empty for rules without
  std::optional<double> value = std::nullopt;
};

// The settings that a list of rule specs ("chow,lossy:alpha=0.1|0.5,beta=auto,budget") stands for.
// A number in a spec may be several, separated by '|', one key a spec. Where the key that makes the
// rule a frontier (alpha; lenience: eps; budget: kl; router: threshold) is not in the spec, it
// takes `alphas`, or, where these are none or the key is no alpha, values that span the rule's
// range. Every setting is checked as `--rule` would check it: throws UsageError for an unknown rule
// and for a value outside its rule's range, Error for a router that cannot be read. The same
// setting twice is taken once.
std::vector<RuleSetting> expand_rules(std::string_view list, std::span<const double> alphas);

}  // namespace outrider::eval

#endif  // OUTRIDER_EVAL_RULE_GRID_H_
