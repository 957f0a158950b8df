// SPDX-License-Identifier: Apache-2.0
// A learned deferral rule: logistic regression on both models' confidence and disagreement,
//   defer where 1 / (1 + exp(-(bias + sum of weight * feature))) > threshold,
// with all features from raw distributions:
//   draft_max, target_max          the largest probability
//   draft_entropy, target_entropy  in nats
//   total_variation                between the two
//   agreement                      1 if both have the same likeliest token, else 0
//
// The file is a JSON object of exactly these keys:
//   "format"     "outrider-router"
//   "version"    1
//   "bias"       a number
//   "weights"    an object {feature: number}; features left out do not count
//   "threshold"  from 0 (always defers) to 1 (never does); optional, 0.5
//
// Narasimhan et al. 2024 name such a router as a replacement for their plug-in estimates (section 7
// and appendix G).
#ifndef OUTRIDER_SPECULATE_RULES_ROUTER_H_
#define OUTRIDER_SPECULATE_RULES_ROUTER_H_

#include <array>
#include <filesystem>
#include <optional>
#include <string_view>

#include "speculate/rules/cascade_rule.h"

namespace outrider {

inline constexpr std::array<std::string_view, 6> kRouterFeatures = {
    "draft_max", "target_max", "draft_entropy", "target_entropy", "total_variation", "agreement"};
using RouterFeatures = std::array<double, kRouterFeatures.size()>;

struct RouterWeights {
  double bias = 0;
  RouterFeatures weights = {};  // in the order of kRouterFeatures
  double threshold = 0.5;
};

// Throws Error for a file that cannot be read or does not have this form.
RouterWeights read_router(const std::filesystem::path& file);

RouterFeatures router_features(const Distribution& raw_draft, const Distribution& raw_target);

class RouterRule final : public DeferralRule {
 public:
  explicit RouterRule(const RouterWeights& weights) : weights_(weights) {}
  const char* name() const override { return "router"; }

 private:
  bool defers(NodeViews& views, int node) const override;

  RouterWeights weights_;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_RULES_ROUTER_H_
