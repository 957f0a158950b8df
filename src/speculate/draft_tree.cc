#include "speculate/draft_tree.h"

#include <algorithm>

namespace outrider {

void DraftTree::reset(TokenId root, std::int64_t n_committed) {
  nodes_.clear();
  nodes_.push_back({.token = root});
  n_distributions_ = 0;
  n_committed_ = n_committed;
}

int DraftTree::add_distribution() {
  if (n_distributions_ == static_cast<int>(distributions_.size())) distributions_.emplace_back();
  distributions_[static_cast<std::size_t>(n_distributions_)].clear();
  return n_distributions_++;
}

int DraftTree::add_child(int parent, TokenId token, int proposal) {
  nodes_.push_back({.token = token,
                    .parent = parent,
                    .depth = node(parent).depth + 1,
                    .proposal = proposal,
                    .draft_prob = kNoDistribution});
  return n_nodes() - 1;
}

void DraftTree::set_draft_prob(int node, int distribution) {
  nodes_[static_cast<std::size_t>(node)].draft_prob = distribution;
}

const Distribution& DraftTree::proposal_prob(int index, Distribution& storage) const {
  if (node(index).proposal != kPointMass) return distribution(node(index).proposal);
  storage = Distribution::point_mass(node(index).token);
  return storage;
}

int DraftTree::next_child(int parent, int after) const {
  for (int index = after + 1; index < n_nodes(); ++index) {
    if (node(index).parent == parent) return index;
  }
  return -1;
}

bool DraftTree::is_chain() const {
  for (int index = 1; index < n_nodes(); ++index) {
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
