// SPDX-License-Identifier: Apache-2.0
#include "speculate/drafters/composite/grafted_draft.h"

#include <algorithm>
#include <cstddef>

#include "speculate/tree_shapes/tree_shape.h"

namespace outrider {

void GraftedDraft::reset(TokenId token, std::int64_t n_committed, int at) {
  tree_.reset(token, n_committed);
  whole_.assign(1, at);
}

int GraftedDraft::own_node(int whole) const {
  const auto at = std::find(whole_.begin(), whole_.end(), whole);
  return at == whole_.end() ? -1 : static_cast<int>(at - whole_.begin());
}

void GraftedDraft::graft(DraftTree& whole, bool share_named, bool with_distributions) {
  // Distributions are copied once each, since siblings drawn without replacement share one.
  std::vector<int> dists;
  const auto copied = [&](int dist) {
    if (dist < 0) return dist;
    const auto index = static_cast<std::size_t>(dist);
    if (index >= dists.size()) dists.resize(index + 1, kNoDistribution);
    if (dists[index] < 0) {
      dists[index] = whole.add_distribution();
      whole.distribution(dists[index]) = tree_.distribution(dist);
    }
    return dists[index];
  };
  for (int node = 0; node <= tree_.n_drafted(); ++node) {
    const DraftNode& from = tree_.node(node);
    if (node > 0) {
      const int parent = whole_[static_cast<std::size_t>(from.parent)];
      int at = -1;
      if (share_named && from.proposal == kPointMass) {
        for (int child = whole.next_child(parent, parent); child >= 0;
             child = whole.next_child(parent, child)) {
          const DraftNode& there = whole.node(child);
          if (there.proposal == kPointMass && there.token == from.token) at = child;
        }
      }
      if (at < 0) at = whole.add_child(parent, from.token, copied(from.proposal), from.replacement);
      whole_.push_back(at);
    }
    const int at = whole_.back();
    if (with_distributions && whole.node(at).draft_prob == kNoDistribution) {
      whole.set_draft_prob(at, copied(from.draft_prob));
      whole.set_raw_draft(at, copied(from.raw_draft));
    }
  }
}

void GraftedDraft::graft_scratch(DraftTree& whole) {
  if (whole.n_nodes() + tree_.n_scratch() > kMaxDraftNodes + 1) {
    tree_.drop_scratch();
    return;
  }
  for (int node = tree_.n_drafted() + 1; node < tree_.n_nodes(); ++node) {
    const DraftNode& from = tree_.node(node);
    whole_.push_back(whole.add_scratch(whole_[static_cast<std::size_t>(from.parent)], from.token));
  }
}

void GraftedDraft::match(const DraftTree& whole) {
  if (whole_.back() < whole.n_nodes()) return;  // scratch nodes come last
  tree_.drop_scratch();
  whole_.resize(static_cast<std::size_t>(tree_.n_drafted()) + 1);
}

RoundResult GraftedDraft::result(const RoundResult& whole) {
  verdict_.path.clear();
  verdict_.next = whole.verdict->next;
  verdict_.corrected = whole.verdict->corrected;
  bool reached = whole_.front() == 0;
  for (const int node : whole.verdict->path) {
    const int own = own_node(node);
    if (!reached) {
      reached = own == 0;
      continue;
    }
    if (own < 0) {
      verdict_.next = whole.tree->node(node).token;
      verdict_.corrected = true;
      break;
    }
    verdict_.path.push_back(own);
  }
  rows_.clear();
  for (const int node : whole_) {
    rows_.push_back(whole.rows.empty() ? whole.first_row + node
                                       : whole.rows[static_cast<std::size_t>(node)]);
  }
  RoundResult result = whole;
  result.tree = &tree_;
  result.verdict = &verdict_;
  result.first_row = rows_.front();
  result.rows = rows_;
  return result;
}

}  // namespace outrider
