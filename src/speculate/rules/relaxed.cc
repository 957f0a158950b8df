// SPDX-License-Identifier: Apache-2.0
#include "speculate/rules/relaxed.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "sampling/divergence.h"
#include "speculate/rules/accepted_tokens.h"

namespace outrider {

RelaxedRule::Bar RelaxedRule::bar(NodeViews& views, int node) const {
  if (!views.is_open(node, marks_.open, marks_.close)) return {};
  const Distribution& target = views.raw_target(node);
  std::array<double, kMaxTop> room;
  const std::span<const double> likeliest =
      largest_probs(target, std::span(room).first(static_cast<std::size_t>(top_)));
  if (likeliest.empty()) return {};
  return {.target = &target,
          .above = std::max(0.0, likeliest.front() - delta_),
          .min_prob = likeliest.back()};
}

void RelaxedRule::interleave(NodeViews& views, int node, const Distribution& draft_prob,
                             Distribution& out) const {
  const Bar bar = this->bar(views, node);
  keep_accepted(
      draft_prob, views.target(node), [&bar](TokenId token) { return bar.refuses(token); }, out);
}

double RelaxedRule::deferred_share(NodeViews& views, int node, const Distribution& draft_prob,
                                   const Distribution&) const {
  const Bar bar = this->bar(views, node);
  return refused_mass(draft_prob, [&bar](TokenId token) { return bar.refuses(token); });
}

}  // namespace outrider
