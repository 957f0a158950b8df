// SPDX-License-Identifier: Apache-2.0
#include "engine/drafting/paying_nodes.h"

#include <algorithm>
#include <cstddef>

namespace outrider {

void PayingNodes::begin(const TrustCurve& curve, const PayingStop::Prices& prices) {
  curve_ = &curve;
  prices_ = prices;
  drafted_.clear();
  refused_.clear();
}

double PayingNodes::price(int n) const {
  const auto behind = static_cast<std::size_t>(std::max(n, 1) - 1);
  return prices_[std::min(behind, prices_.size() - 1)];
}

void PayingNodes::refused(int parent, TokenId token, double certainty) {
  refused_.push_back({parent, token, certainty});
}

double PayingNodes::gain(const DraftTree& tree) const {
  const auto n_nodes = std::min(static_cast<int>(drafted_.size()), tree.n_drafted());
  survival_.assign(static_cast<std::size_t>(n_nodes) + 1, 1);
  double gained = 0;
  for (int node = 1; node <= n_nodes; ++node) {
    const auto index = static_cast<std::size_t>(node);
    survival_[index] =
        survival_[static_cast<std::size_t>(tree.node(node).parent)] * stands(drafted_[index - 1]);
    gained += survival_[index] - price(node);
  }
  return gained;
}

void PayingNodes::withdraw(const DraftTree& tree) {
  if (drafted_.empty()) return;
  refused_.assign(1, {0, tree.node(1).token, drafted_[0]});
  drafted_.clear();
}

void PayingNodes::learn_aside(TokenId first, TrustCurve& curve) const {
  for (const Refused& one : refused_) {
    if (one.parent == 0) curve.add(one.certainty, one.token == first);
  }
}

void PayingNodes::learn(const DraftTree& tree, const Verdict& verdict, TrustCurve& curve) const {
  if (static_cast<int>(drafted_.size()) != tree.n_drafted()) return;
  const auto stood = [&verdict](int node) {
    return std::find(verdict.path.begin(), verdict.path.end(), node) != verdict.path.end();
  };
  for (int node = 1; node <= tree.n_drafted(); ++node) {
    const int parent = tree.node(node).parent;
    if (parent != 0 && !stood(parent)) continue;
    curve.add(drafted_[static_cast<std::size_t>(node - 1)], stood(node));
  }
  const int last = verdict.path.empty() ? 0 : verdict.path.back();
  for (const Refused& one : refused_) {
    if (one.parent == last) curve.add(one.certainty, one.token == verdict.next);
  }
}

}  // namespace outrider
