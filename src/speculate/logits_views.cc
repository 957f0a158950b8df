// SPDX-License-Identifier: Apache-2.0
#include "speculate/logits_views.h"

#include <cstddef>
#include <limits>

namespace outrider {

void LogitsViews::reset(const DraftTree& tree, const ForwardOutput& output, int first_row,
                        std::span<const TokenId> text, double rule_kl) {
  tree_ = &tree;
  output_ = &output;
  first_row_ = first_row;
  text_ = text;
  rule_kl_ = rule_kl;
  leaf_drafter_ = nullptr;
  // Scratch nodes are never viewed.
  const auto n_nodes = static_cast<std::size_t>(tree.n_drafted()) + 1;
  notes_.assign(n_nodes, std::numeric_limits<double>::quiet_NaN());
  path_.reserve(n_nodes);
  if (targets_.size() < n_nodes) {
    targets_.resize(n_nodes);
    raw_targets_.resize(n_nodes);
    leaf_drafts_.resize(n_nodes);
    // Allocated now, since any node may be viewed for the first time in any round.
    const std::size_t most =
        transform_->max_support(static_cast<std::size_t>(output.logits.vocabulary_size()));
    for (Cached& cached : targets_) cached.distribution.reserve(most);
  }
  for (Cached& cached : targets_) cached.known = false;
  for (Cached& cached : raw_targets_) cached.known = false;
  for (LeafDraft& leaf : leaf_drafts_) leaf.asked = leaf.known = false;
}

void LogitsViews::ask_at_leaves(Drafter& drafter, const Context& context, bool raw) {
  leaf_drafter_ = &drafter;
  leaf_context_ = &context;
  leaf_raw_ = raw;
}

PenalisedRow LogitsViews::penalised(int node) {
  if (transform_->changes_logits(*history_)) tree_->path_tokens(node, path_);
  return {*transform_, logits(node), *history_, path_, replaced_};
}

bool LogitsViews::is_open(int node, TokenId open, TokenId close) {
  for (; node > 0; node = tree_->node(node).parent) {
    const TokenId token = tree_->node(node).token;
    if (token == open || token == close) return token == open;
  }
  if (marks_.open != open || marks_.close != close || marks_.n_read > text_.size()) {
    marks_ = {.open = open, .close = close};
  }
  for (; marks_.n_read < text_.size(); ++marks_.n_read) {
    const TokenId token = text_[marks_.n_read];
    if (token == open || token == close) marks_.is_open = token == open;
  }
  return marks_.is_open;
}

const Distribution& LogitsViews::target(int node) {
  Cached& cached = targets_[static_cast<std::size_t>(node)];
  if (!cached.known) {
    transform_->distribution(penalised(node).row(), cached.distribution);
    cached.known = true;
  }
  return cached.distribution;
}

const Distribution& LogitsViews::raw_target(int node) {
  if (transform_->keeps_raw()) return target(node);
  Cached& cached = raw_targets_[static_cast<std::size_t>(node)];
  if (!cached.known) {
    transform_->raw_distribution(penalised(node).row().values(), cached.distribution);
    cached.known = true;
  }
  return cached.distribution;
}

LogitsViews::LeafDraft& LogitsViews::leaf_draft(int node) {
  LeafDraft& leaf = leaf_drafts_[static_cast<std::size_t>(node)];
  if (!leaf.asked && leaf_drafter_ != nullptr) {
    leaf.asked = true;
    leaf.known = leaf_drafter_->draft_at(*leaf_context_, *tree_, node, leaf.draft_prob,
                                         leaf_raw_ ? &leaf.raw_draft : nullptr);
  }
  return leaf;
}

const Distribution* LogitsViews::draft(int node) {
  const int dist = tree_->node(node).draft_prob;
  if (dist != kNoDistribution) return &tree_->distribution(dist);
  const LeafDraft& leaf = leaf_draft(node);
  return leaf.known ? &leaf.draft_prob : nullptr;
}

const Distribution* LogitsViews::raw_draft(int node) {
  const DraftNode& at = tree_->node(node);
  if (at.draft_prob != kNoDistribution) {
    return at.raw_draft == kNoDistribution ? nullptr : &tree_->distribution(at.raw_draft);
  }
  const LeafDraft& leaf = leaf_draft(node);
  return leaf.known && leaf_raw_ ? &leaf.raw_draft : nullptr;
}

}  // namespace outrider
