// SPDX-License-Identifier: Apache-2.0
#include "speculate/acceptances/bild.h"

#include "base/elementary.h"
#include "outrider/error.h"

namespace outrider {

bool Bild::keeps(NodeViews& views, int node, TokenId token) const {
  const Distribution* raw_draft = views.raw_draft(node);
  if (raw_draft == nullptr || raw_draft->prob(token) < fallback_) return false;
  return -portable_log(views.raw_target(node).prob(token)) <= rollback_;
}

void Bild::verify(const DraftTree& tree, NodeViews& views, Chance& chance, Verdict& verdict) const {
  if (!tree.is_chain()) {
    throw Error("verify bild", "draft tree", "a chain", "a tree with siblings");
  }
  verdict.path.clear();
  int node = 0;
  while (node < tree.n_drafted() && keeps(views, node, tree.node(node + 1).token)) {
    verdict.path.push_back(++node);
  }
  verdict.corrected = node < tree.n_drafted();
  verdict.next_prob.assign(views.target(node));
  verdict.next = chance.categorical(
      verdict.next_prob,
      {tree.n_committed(), node, verdict.corrected ? Purpose::residual : Purpose::bonus});
  cost_given_draft(tree, views, verdict);
}

}  // namespace outrider
