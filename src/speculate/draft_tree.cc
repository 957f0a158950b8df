// SPDX-License-Identifier: Apache-2.0
#include "speculate/draft_tree.h"

#include <fmt/format.h>

#include <algorithm>

#include "outrider/error.h"

namespace outrider {

void DraftTree::reset(TokenId root, std::int64_t n_committed) {
  nodes_.clear();
  nodes_.push_back({.token = root});
  n_drafted_ = 0;
  n_distributions_ = 0;
  n_committed_ = n_committed;
}

int DraftTree::add_distribution() {
  if (n_distributions_ == static_cast<int>(distributions_.size())) distributions_.emplace_back();
  distributions_[static_cast<std::size_t>(n_distributions_)].clear();
  return n_distributions_++;
}

int DraftTree::add_child(int parent, TokenId token, int proposal, Replacement replacement) {
  if (n_scratch() > 0) {
    throw Error("grow draft tree", "node to be judged", "all such before the first scratch node",
                "one behind it");
  }
  nodes_.push_back({.token = token,
                    .parent = parent,
                    .depth = node(parent).depth + 1,
                    .proposal = proposal,
                    .replacement = replacement,
                    .draft_prob = kNoDistribution,
                    .raw_draft = kNoDistribution});
  return ++n_drafted_;
}

int DraftTree::add_scratch(int parent, TokenId token) {
  DraftNode scratch;
  scratch.token = token;
  scratch.parent = parent;
  scratch.depth = node(parent).depth + 1;
  nodes_.push_back(scratch);
  return n_nodes() - 1;
}

void DraftTree::set_draft_prob(int node, int distribution) {
  nodes_[static_cast<std::size_t>(node)].draft_prob = distribution;
}

void DraftTree::set_raw_draft(int node, int distribution) {
  nodes_[static_cast<std::size_t>(node)].raw_draft = distribution;
}

void DraftTree::retain(std::span<const int> kept) {
  std::vector<int> ordinal(nodes_.size(), -1);
  for (std::size_t index = 0; index < kept.size(); ++index) {
    ordinal[static_cast<std::size_t>(kept[index])] = static_cast<int>(index);
  }
  for (int index = 0; index < n_nodes(); ++index) {
    if (ordinal[static_cast<std::size_t>(index)] < 0 && node(index).proposal != kPointMass) {
      throw Error("prune draft tree", fmt::format("node {}", index), "a point mass",
                  "a sampled token");
    }
  }
  for (std::size_t index = 0; index < kept.size(); ++index) {
    DraftNode moved = node(kept[index]);
    if (moved.parent >= 0) moved.parent = ordinal[static_cast<std::size_t>(moved.parent)];
    nodes_[index] = moved;
  }
  nodes_.resize(kept.size());
  n_drafted_ = static_cast<int>(std::count_if(
      kept.begin(), kept.end(), [this](int index) { return index > 0 && index <= n_drafted_; }));
}

const Distribution& DraftTree::proposal_prob(int index, Distribution& storage) const {
  const DraftNode& drawn = node(index);
  if (drawn.proposal == kPointMass) {
    storage.ids.assign(1, drawn.token);
    storage.probs.assign(1, 1.0);
    return storage;
  }
  if (drawn.replacement == Replacement::without) {
    // never null: the drawn token itself remains
    return *less_siblings(drawn.parent, index, drawn.proposal, storage);
  }
  return distribution(drawn.proposal);
}

// The proposal distribution without the tokens of those children of `parent`, with ordinals below
// `before`, that were drawn from it without replacement. Drafter and verifier both use this
// function, so they divide by the same bits.
const Distribution* DraftTree::less_siblings(int parent, int before, int dist,
                                             Distribution& storage) const {
  const Distribution& whole = distribution(dist);
  bool is_whole = true;
  double mass = 0;
  for (int child = next_child(parent, parent); child >= 0 && child < before;
       child = next_child(parent, child)) {
    const DraftNode& sibling = node(child);
    if (sibling.proposal != dist || sibling.replacement != Replacement::without) continue;
    if (is_whole) storage.assign(whole);
    is_whole = false;
    const auto at = std::lower_bound(storage.ids.begin(), storage.ids.end(), sibling.token);
    const auto index = at - storage.ids.begin();
    storage.ids.erase(at);
    storage.probs.erase(storage.probs.begin() + index);
  }
  if (is_whole) return &whole;
  for (const double prob : storage.probs) mass += prob;
  if (!(mass > 0)) return nullptr;
  for (double& prob : storage.probs) prob /= mass;
  return &storage;
}

int DraftTree::next_child(int parent, int after) const {
  for (int index = after + 1; index <= n_drafted_; ++index) {
    if (node(index).parent == parent) return index;
  }
  return -1;
}

int DraftTree::rank(int node_index) const {
  int rank = 0;
  const int parent = node(node_index).parent;
  for (int child = next_child(parent, parent); child < node_index;
       child = next_child(parent, child)) {
    ++rank;
  }
  return rank;
}

int DraftTree::depth() const {
  int deepest = 0;
  for (int index = 1; index <= n_drafted_; ++index) deepest = std::max(deepest, node(index).depth);
  return deepest;
}

bool DraftTree::is_chain() const {
  for (int index = 1; index <= n_drafted_; ++index) {
    if (node(index).parent != index - 1) return false;
  }
  return true;
}

void DraftTree::path_tokens(int node_index, std::vector<TokenId>& path) const {
  path.clear();
  for (int index = node_index; index > 0; index = node(index).parent) {
    path.push_back(node(index).token);
  }
  std::reverse(path.begin(), path.end());
}

}  // namespace outrider
