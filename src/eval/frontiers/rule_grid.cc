// SPDX-License-Identifier: Apache-2.0
#include "eval/frontiers/rule_grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "base/spec.h"
#include "outrider/error.h"
#include "speculate/rules/make_rule.h"

namespace outrider::eval {
namespace {

// Default values for sweeps. Probabilities and their differences are spaced evenly over their
// range; divergences, entropies and prices in steps that look even on a curve.
const std::vector<double> kShares = {0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1};
// For shares of the likeliest token's probability: much of a distribution is at a hundredth of it
// and below.
const std::vector<double> kSharesOfLargest = {0,   0.1, 0.2, 0.3,  0.4,  0.5,   0.6,
                                              0.7, 0.8, 0.9, 0.97, 0.99, 0.999, 1};
const std::vector<double> kSharesBelowOne = {0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95};
const std::vector<double> kDifferences = {-1,  -0.4, -0.2, -0.1, 0,   0.05, 0.1,
                                          0.2, 0.3,  0.4,  0.5,  0.6, 0.8,  1};
const std::vector<double> kEntropies = {0,    0.25, 0.5, 0.75, 1,   1.25, 1.5, 1.75,
                                        2.25, 2.5,  3,   3.5,  4.5, 6,    15};
const std::vector<double> kEntropyDifferences = {-15, -2,   -1, -0.5, -0.25, 0, 0.25,
                                                 0.5, 0.75, 1,  1.5,  2,     3, 15};
const std::vector<double> kDivergences = {0,   0.001, 0.003, 0.01, 0.02, 0.05, 0.1,
                                          0.2, 0.3,   0.5,   1,    2,    5};
const std::vector<double> kSurprises = {0, 0.25, 0.5, 0.75, 1, 1.5, 2, 2.5, 3, 4, 5, 7, 10, 1000};
const std::vector<double> kLeniences = {1,   0.9, 0.8, 0.7,  0.6,  0.5, 0.4,
                                        0.3, 0.2, 0.1, 0.05, 0.01, 1e-6};

std::optional<double> number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// For the difference of two decimal fractions.
constexpr double kRounding = 1e-12;

struct Sweep {
  std::string key;
  const std::vector<double>* values;
  double min = -std::numeric_limits<double>::infinity();  // smaller values are left out
};

// The swept key and its values. No key: the rule is one setting.
Sweep sweep_of(const Spec& spec) {
  const std::string& name = spec.name();
  const bool log = spec.text("loss") == "log";
  if (name == "chow") return {"alpha", log ? &kEntropies : &kShares};
  if (name == "diff" || name == "opt") return {"alpha", log ? &kEntropyDifferences : &kDifferences};
  if (name == "token-v1") return {"alpha", &kDifferences};
  if (name == "token-v2") return {"alpha", &kShares};
  if (name == "token-v3" || name == "lossy-greedy") return {"alpha", &kSharesOfLargest};
  if (name == "lossy") {
    if (spec.text("kl")) return {"kl", &kDivergences};
    // beta is at least 1 - alpha.
    const double beta = number(spec.text("beta").value_or("")).value_or(1.0);
    return {"alpha", &kSharesBelowOne, 1 - beta - kRounding};
  }
  if (name == "lenience") return {"eps", &kLeniences};
  if (name == "budget" && !spec.text("total")) return {"kl", &kDivergences};
  if (name == "bild-sampled") {
    const std::string distance = spec.text("distance").value_or("surprise");
    const bool bounded = distance == "tv" || distance == "js";
    return {"alpha", bounded ? &kShares : &kSurprises};
  }
  if (name == "router") return {"threshold", &kShares};
  return {"", nullptr};
}

// The key with several values in a spec, if there is one.
std::string key_of_several(const Spec& spec) {
  for (const char* key : {"alpha", "beta", "kl", "total", "eps", "threshold", "epsilon", "delta",
                          "fallback", "rollback", "entropy", "window", "top"}) {
    if (spec.text(key).value_or("").find('|') != std::string::npos) return key;
  }
  return {};
}

std::vector<std::string> split_values(const std::string& text) {
  std::vector<std::string> values(1);
  for (const char c : text) {
    if (c == '|') {
      values.emplace_back();
    } else {
      values.back() += c;
    }
  }
  return values;
}

void add_settings(const std::string& text, std::span<const double> alphas,
                  std::vector<RuleSetting>& settings) {
  const Spec spec = Spec::parse("rule", text);
  const Sweep sweep = sweep_of(spec);
  std::string key = key_of_several(spec);
  if (key.empty()) key = sweep.key;
  std::vector<std::string> values;
  if (const auto given = spec.text(key)) {
    values = split_values(*given);
  } else if (!key.empty()) {
    const bool takes_alphas = key == "alpha" && !alphas.empty();
    for (const double value : takes_alphas ? alphas : std::span<const double>(*sweep.values)) {
      if (takes_alphas || value >= sweep.min) values.push_back(fmt::format("{}", value));
    }
  }
  const auto add = [&](RuleSetting setting) {
    (void)make_verification(setting.rule, "exact");
    const bool known = std::any_of(settings.begin(), settings.end(), [&](const RuleSetting& other) {
      return other.rule == setting.rule;
    });
    if (!known) settings.push_back(std::move(setting));
  };
  if (values.empty()) add({.rule = text, .family = text, .parameter = {}});
  for (const std::string& value : values) {
    add({.rule = spec.with(key, value),
         .family = spec.without(key),
         .parameter = key,
         .value = number(value)});
  }
}

}  // namespace

std::vector<RuleSetting> expand_rules(std::string_view list, std::span<const double> alphas) {
  std::vector<RuleSetting> settings;
  for (const std::string& text : split_specs(list, ',')) add_settings(text, alphas, settings);
  if (settings.empty()) throw UsageError("read rules", "rules", "at least one", "none");
  return settings;
}

}  // namespace outrider::eval
