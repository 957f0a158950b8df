// SPDX-License-Identifier: Apache-2.0
#include "speculate/acceptances/typical.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include "base/elementary.h"
#include "sampling/divergence.h"

namespace outrider {

void Typical::verify(const DraftTree& tree, NodeViews& views, Chance& chance,
                     Verdict& verdict) const {
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  constexpr double kImplausible = -std::numeric_limits<double>::infinity();
  const auto n_nodes = static_cast<std::size_t>(tree.n_drafted()) + 1;
  std::vector<double> path_logprob(n_nodes, kImplausible);
  std::vector<double> threshold(n_nodes, kUnknown);  // for the node's children
  path_logprob[0] = 0;
  int best = 0;
  for (int node = 1; node <= tree.n_drafted(); ++node) {
    const int parent = tree.node(node).parent;
    const auto at_parent = static_cast<std::size_t>(parent);
    if (path_logprob[at_parent] == kImplausible) continue;
    const Distribution& target_prob = views.target(parent);
    if (threshold[at_parent] != threshold[at_parent]) {
      threshold[at_parent] = std::min(epsilon_, delta_ * portable_exp(-entropy(target_prob)));
    }
    const double prob = target_prob.prob(tree.node(node).token);
    if (!(prob > threshold[at_parent])) continue;
    const double logprob = path_logprob[at_parent] + portable_log(prob);
    path_logprob[static_cast<std::size_t>(node)] = logprob;
    const int depth = tree.node(node).depth;
    const int best_depth = tree.node(best).depth;
    if (depth > best_depth ||
        (depth == best_depth && logprob > path_logprob[static_cast<std::size_t>(best)])) {
      best = node;
    }
  }
  verdict.path.clear();
  for (int node = best; node > 0; node = tree.node(node).parent) verdict.path.push_back(node);
  std::reverse(verdict.path.begin(), verdict.path.end());
  verdict.corrected = tree.next_child(best, best) >= 0;
  verdict.next_prob.assign(views.target(best));
  verdict.next = chance.categorical(
      verdict.next_prob,
      {tree.n_committed(), best, verdict.corrected ? Purpose::residual : Purpose::bonus});
  cost_given_draft(tree, views, verdict);
}

}  // namespace outrider
