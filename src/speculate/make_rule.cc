#include "speculate/make_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "base/spec.h"
#include "outrider/error.h"
#include "speculate/bild.h"
#include "speculate/rules/bild_sampled.h"
#include "speculate/rules/budget.h"
#include "speculate/rules/chow.h"
#include "speculate/rules/diff.h"
#include "speculate/rules/lenience.h"
#include "speculate/rules/lossy.h"
#include "speculate/rules/lossy_greedy.h"
#include "speculate/rules/opt.h"
#include "speculate/rules/router.h"
#include "speculate/rules/target_bonus.h"
#include "speculate/rules/token_specific.h"
#include "speculate/typical.h"

namespace outrider {
namespace {

constexpr const char* kOperation = "read rule";

// Entropies, prices and distances that no model reaches: log(vocabulary) is below 15.
constexpr double kLargest = 1000;

[[noreturn]] void refuse_missing(const Spec& spec, std::string_view expected) {
  throw UsageError(kOperation, spec.name(), expected, "none");
}

double required_number(const Spec& spec, std::string_view key, double least, double most) {
  const std::optional<double> value = spec.number(key, least, most);
  if (!value) refuse_missing(spec, fmt::format("{}=, a number from {} to {}", key, least, most));
  return *value;
}

using RulePointer = std::unique_ptr<const Rule>;

RulePointer make_lossy(const Spec& spec) {
  spec.require_keys({"alpha", "beta", "kl", "bonus"});
  if (const auto kl = spec.number("kl", 0, kLargest)) {
    for (const char* key : {"alpha", "beta"}) {
      if (!spec.text(key)) continue;
      throw UsageError(kOperation, spec.name(), "kl= alone, which finds alpha and beta itself",
                       fmt::format("{}= beside it", key));
    }
    return std::make_unique<BudgetRule>(KlBudget{.per_token = *kl}, "lossy");
  }
  const double alpha = required_number(spec, "alpha", 0, 1);
  if (alpha == 1)
    throw UsageError(kOperation, "lossy:alpha=1 alpha", "a number from 0 to below 1", "1");
  if (spec.text("beta") == "auto") return std::make_unique<LossyRule>(alpha, std::nullopt);
  // 1 - 0.7 is more than 0.3 in binary: what was meant is what has a dozen digits.
  const double least = std::min(1.0, std::round((1 - alpha) * 1e12) / 1e12);
  const double beta = spec.number("beta", least, 1).value_or(1.0);
  return std::make_unique<LossyRule>(alpha, std::max(beta, 1 - alpha));
}

RulePointer make_lossy_greedy(const Spec& spec) {
  spec.require_keys({"alpha", "bonus"});
  return std::make_unique<LossyGreedyRule>(required_number(spec, "alpha", -1, 1));
}

// The 0-1 loss is at most 1, so that alphas beyond [-1, 1] change nothing; except for opt, whose
// alpha is the price of a rejection.
template <class DeferralByLoss>
RulePointer make_by_loss(const Spec& spec, double largest_for_zero_one) {
  spec.require_keys({"alpha", "loss", "bonus"});
  const bool log = spec.choice("loss", {"zero-one", "log"}) == "log";
  const double largest = log ? kLargest : largest_for_zero_one;
  return std::make_unique<DeferralByLoss>(required_number(spec, "alpha", -largest, largest),
                                          log ? Loss::log : Loss::zero_one);
}
RulePointer make_chow(const Spec& spec) { return make_by_loss<ChowRule>(spec, 1); }
RulePointer make_diff(const Spec& spec) { return make_by_loss<DiffRule>(spec, 1); }
RulePointer make_opt(const Spec& spec) { return make_by_loss<OptRule>(spec, kLargest); }

template <TokenSpecificRule::Variant variant>
RulePointer make_token(const Spec& spec) {
  spec.require_keys({"alpha", "bonus"});
  return std::make_unique<TokenSpecificRule>(variant, required_number(spec, "alpha", -1, 1));
}

RulePointer make_bild_sampled(const Spec& spec) {
  using Distance = BildSampledRule::Distance;
  spec.require_keys({"alpha", "distance", "bonus"});
  const double alpha = required_number(spec, "alpha", 0, kLargest);
  const auto name = spec.choice("distance", {"surprise", "tv", "kl", "js"});
  Distance distance = Distance::surprise;
  if (name == "tv") distance = Distance::total_variation;
  if (name == "kl") distance = Distance::kl;
  if (name == "js") distance = Distance::jensen_shannon;
  return std::make_unique<BildSampledRule>(alpha, distance);
}

RulePointer make_lenience(const Spec& spec) {
  using Function = LenienceRule::Function;
  spec.require_keys({"f", "eps", "bonus"});
  // At a millionth, whatever a float32 softmax can tell from 0 stands.
  const double eps = required_number(spec, "eps", 1e-6, 1);
  const auto name = spec.choice("f", {"linear", "square", "exp"});
  Function function = Function::linear;
  if (name == "square") function = Function::square;
  if (name == "exp") function = Function::exp;
  return std::make_unique<LenienceRule>(function, eps);
}

RulePointer make_budget(const Spec& spec) {
  spec.require_keys({"kl", "total", "bonus"});
  KlBudget budget;
  const auto per_token = spec.number("kl", 0, kLargest);
  const auto per_text = spec.number("total", 0, 1e9);
  if (!per_token && !per_text) refuse_missing(spec, "kl= (nats per token) or total= (per text)");
  if (per_token) budget.per_token = *per_token;
  if (per_text) budget.per_text = *per_text;
  return std::make_unique<BudgetRule>(budget);
}

RulePointer make_router(const Spec& spec) {
  spec.require_keys({"path", "threshold", "bonus"});
  const auto path = spec.text("path");
  if (!path || path->empty())
    refuse_missing(spec, "path=, a router's JSON file or the folder of its router.json");
  const auto threshold = spec.number("threshold", 0, 1);
  std::filesystem::path file = *path;
  std::error_code ignored;  // reading it says what is wrong
  if (std::filesystem::is_directory(file, ignored)) file /= "router.json";
  RouterWeights weights = read_router(file);
  if (threshold) weights.threshold = *threshold;
  return std::make_unique<RouterRule>(weights);
}

struct RuleEntry {
  std::string_view name;
  RulePointer (*make)(const Spec& spec);
  std::string_view bonus = "rule";  // where the spec does not say
};

constexpr RuleEntry kRules[] = {
    {"chow", make_chow},
    {"diff", make_diff},
    {"opt", make_opt},
    {"token-v1", make_token<TokenSpecificRule::Variant::v1>},
    {"token-v2", make_token<TokenSpecificRule::Variant::v2>},
    {"token-v3", make_token<TokenSpecificRule::Variant::v3>},
    {"lossy", make_lossy},
    {"lossy-greedy", make_lossy_greedy, "target"},
    {"lenience", make_lenience},
    {"budget", make_budget},
    {"bild-sampled", make_bild_sampled},
    {"router", make_router},
};

// Acceptances of their own. They judge a draft in their one way.
Judging make_typical(const Spec& spec) {
  spec.require_keys({"epsilon", "delta"});
  // Medusa's own values.
  const double epsilon = spec.number("epsilon", 0, 1).value_or(0.09);
  const double delta = spec.number("delta", 0, kLargest).value_or(0.3);
  return {.acceptance = std::make_unique<Typical>(epsilon, delta), .rule = spec.name()};
}

Judging make_bild(const Spec& spec) {
  spec.require_keys({"fallback", "rollback"});
  // The published code's for translation.
  const double fallback = spec.number("fallback", 0, 1).value_or(0.6);
  const double rollback = spec.number("rollback", 0, kLargest).value_or(5.0);
  return {.acceptance = std::make_unique<Bild>(fallback, rollback),
          .rule = spec.name(),
          .draft_until = fallback};
}

struct AcceptanceEntry {
  std::string_view name;
  Judging (*make)(const Spec& spec);
};

constexpr AcceptanceEntry kAcceptances[] = {{"typical", make_typical}, {"bild", make_bild}};

std::unique_ptr<Acceptance> make_acceptance(std::shared_ptr<const Rule> rule,
                                            const std::string& verify) {
  if (verify == "exact") return make_multi_round(std::move(rule));
  if (verify == "block") return make_block(std::move(rule));
  if (verify == "traversal") return make_traversal(std::move(rule));
  if (verify == "coupled") return make_coupled(std::move(rule));
  throw UsageError("read verify", verify, "one of exact, block, traversal, coupled", verify);
}

Spec parse_rule(const std::string& rule, const std::vector<std::string_view>& names) {
  Spec spec = Spec::parse("rule", rule);
  if (std::find(names.begin(), names.end(), spec.name()) == names.end()) {
    throw UsageError(kOperation, rule, fmt::format("one of {}", fmt::join(names, ", ")),
                     spec.name());
  }
  spec.require_no_value();
  return spec;
}

std::vector<std::string_view> names_of_rules() {
  std::vector<std::string_view> names = {"exact"};
  for (const RuleEntry& entry : kRules) names.push_back(entry.name);
  return names;
}

std::shared_ptr<const Rule> make_rule(const Spec& spec) {
  for (const RuleEntry& entry : kRules) {
    if (spec.name() != entry.name) continue;
    RulePointer rule = entry.make(spec);
    const bool by_target =
        spec.choice("bonus", {"rule", "target"}).value_or(std::string(entry.bonus)) == "target";
    if (by_target) return std::make_shared<TargetBonus>(std::move(rule));
    return rule;
  }
  spec.require_keys({});
  return std::make_shared<ExactRule>();
}

}  // namespace

std::vector<std::string_view> rule_names() {
  std::vector<std::string_view> names = names_of_rules();
  for (const AcceptanceEntry& entry : kAcceptances) names.push_back(entry.name);
  return names;
}

std::shared_ptr<const Rule> make_rule(const std::string& rule) {
  const std::vector<std::string_view> known = names_of_rules();
  const std::string name = Spec::parse("rule", rule).name();
  for (const AcceptanceEntry& entry : kAcceptances) {
    if (name != entry.name) continue;
    throw UsageError(kOperation, rule,
                     fmt::format("a rule that says what is emitted at every position (one of {})",
                                 fmt::join(known, ", ")),
                     fmt::format("{}, which judges whole drafts", name));
  }
  return make_rule(parse_rule(rule, known));
}

Judging make_judging(const std::string& rule, const std::string& verify) {
  const Spec spec = parse_rule(rule, rule_names());
  for (const AcceptanceEntry& entry : kAcceptances) {
    if (spec.name() != entry.name) continue;
    if (verify != "exact") {
      throw UsageError("read verify", verify, fmt::format("exact with the rule {}", entry.name),
                       verify);
    }
    return entry.make(spec);
  }
  return {.acceptance = make_acceptance(make_rule(spec), verify), .rule = spec.name()};
}

}  // namespace outrider
