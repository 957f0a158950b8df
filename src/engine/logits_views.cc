#include "engine/logits_views.h"

#include <cstddef>

namespace outrider {

void LogitsViews::reset(const DraftTree& tree, const ForwardOutput& output, int first_row) {
  tree_ = &tree;
  output_ = &output;
  first_row_ = first_row;
  const auto n_nodes = static_cast<std::size_t>(tree.n_nodes());
  if (targets_.size() < n_nodes) {
    targets_.resize(n_nodes);
    raw_targets_.resize(n_nodes);
  }
  for (Cached& cached : targets_) cached.known = false;
  for (Cached& cached : raw_targets_) cached.known = false;
}

std::span<const float> LogitsViews::penalised(int node) {
  const std::span<const float> logits = this->logits(node);
  if (!transform_->has_penalties()) return logits;
  penalised_.assign(logits.begin(), logits.end());
  tree_->path_tokens(node, path_);
  transform_->penalise(penalised_, *history_, path_);
  return penalised_;
}

const Distribution& LogitsViews::target(int node) {
  Cached& cached = targets_[static_cast<std::size_t>(node)];
  if (!cached.known) {
    transform_->distribution(penalised(node), cached.distribution);
    cached.known = true;
  }
  return cached.distribution;
}

const Distribution& LogitsViews::raw_target(int node) {
  Cached& cached = raw_targets_[static_cast<std::size_t>(node)];
  if (!cached.known) {
    transform_->raw_distribution(penalised(node), cached.distribution);
    cached.known = true;
  }
  return cached.distribution;
}

const Distribution* LogitsViews::draft(int node) {
  const int law = tree_->node(node).draft_prob;
  return law == kNoDistribution ? nullptr : &tree_->distribution(law);
}

}  // namespace outrider
