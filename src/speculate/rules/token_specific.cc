// SPDX-License-Identifier: Apache-2.0
#include "speculate/rules/token_specific.h"

#include "sampling/divergence.h"
#include "speculate/rules/accepted_tokens.h"

namespace outrider {

const char* TokenSpecificRule::name() const {
  switch (variant_) {
    case Variant::v1:
      return "token-v1";
    case Variant::v2:
      return "token-v2";
    case Variant::v3:
      break;
  }
  return "token-v3";
}

RuleNeeds TokenSpecificRule::needs() const {
  return {.draft_prob = true, .raw_draft = variant_ == Variant::v1, .leaf_draft = true};
}

TokenSpecificRule::Bar TokenSpecificRule::bar(NodeViews& views, int node) const {
  const Distribution& target = views.raw_target(node);
  const double best = largest_prob(target);
  switch (variant_) {
    case Variant::v1:
      return {.raw = views.raw_draft(node), .min_prob = best - alpha_};
    case Variant::v2:
      return {.raw = &target, .min_prob = best - alpha_};
    case Variant::v3:
      break;
  }
  return {.raw = &target, .min_prob = best * (1 - alpha_)};
}

void TokenSpecificRule::interleave(NodeViews& views, int node, const Distribution& draft_prob,
                                   Distribution& out) const {
  const Bar bar = this->bar(views, node);
  keep_accepted(
      draft_prob, views.target(node), [&bar](TokenId token) { return bar.refuses(token); }, out);
}

double TokenSpecificRule::deferred_share(NodeViews& views, int node, const Distribution& draft_prob,
                                         const Distribution&) const {
  const Bar bar = this->bar(views, node);
  return refused_mass(draft_prob, [&bar](TokenId token) { return bar.refuses(token); });
}

}  // namespace outrider
