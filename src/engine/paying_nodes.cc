#include "engine/paying_nodes.h"

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
