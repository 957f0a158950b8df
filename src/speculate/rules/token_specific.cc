#include "speculate/rules/token_specific.h"

#include <algorithm>
#include <cstddef>

#include "sampling/divergence.h"

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
      return {.raw = views.raw_draft(node), .least = best - alpha_};
    case Variant::v2:
      return {.raw = &target, .least = best - alpha_};
    case Variant::v3:
      break;
  }
  return {.raw = &target, .least = best * (1 - alpha_)};
}

void TokenSpecificRule::interleave(NodeViews& views, int node, const Distribution& draft_prob,
                                   Distribution& out) const {
  const Distribution& target_prob = views.target(node);
  const Bar bar = this->bar(views, node);
  double deferred = 0;
  bool any_accepted = false;
  for (std::size_t i = 0; i < draft_prob.ids.size(); ++i) {
    if (bar.refuses(draft_prob.ids[i])) {
      deferred += draft_prob.probs[i];
    } else {
      any_accepted = true;
    }
  }
  // The end points to the last bit.
  if (!any_accepted) {
    out.become(target_prob);
    return;
  }
  if (deferred <= 0) {
    out.become(draft_prob);
    return;
  }
  combine(
      draft_prob, target_prob,
      [&](TokenId id, double in_draft, double in_target) {
        const bool accepted = in_draft > 0 && !bar.refuses(id);
        return (accepted ? in_draft : 0.0) + in_target * deferred;
      },
      out);
}

double TokenSpecificRule::deferred_share(NodeViews& views, int node, const Distribution& draft_prob,
                                         const Distribution&) const {
  const Bar bar = this->bar(views, node);
  double deferred = 0;
  for (std::size_t i = 0; i < draft_prob.ids.size(); ++i) {
    if (bar.refuses(draft_prob.ids[i])) deferred += draft_prob.probs[i];
  }
  return std::min(1.0, deferred);
}

}  // namespace outrider
