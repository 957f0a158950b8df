// SPDX-License-Identifier: Apache-2.0
#include "speculate/tree_shapes/tree_growth.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "base/elementary.h"
#include "sampling/penalised_row.h"

namespace outrider {

namespace {

// The drafter's logits after a node, with bias and penalties.
PenalisedRow penalised_at(const Context& context, const DraftTree& tree, int node, LogitRow logits,
                          PenaltyStorage& storage) {
  if (context.transform->changes_logits(*context.history)) tree.path_tokens(node, storage.path);
  return {*context.transform, logits, *context.history, storage.path, storage.replaced};
}

}  // namespace

void distributions_at(const Context& context, const DraftTree& tree, int node, LogitRow logits,
                      PenaltyStorage& storage, Distribution& draft_prob, Distribution* raw_draft) {
  const PenalisedRow penalised = penalised_at(context, tree, node, logits, storage);
  context.transform->distribution(penalised.row(), draft_prob);
  if (raw_draft == nullptr) return;
  if (context.transform->keeps_raw()) {
    raw_draft->assign(draft_prob);
  } else {
    context.transform->raw_distribution(penalised.row().values(), *raw_draft);
  }
}

void TreeGrowth::start(const DraftJob& job, int depth, bool may_mix) {
  job_ = &job;
  depth_ = std::min({depth, job.budget.depth, job.shape->depth()});
  mixes_levels_ = may_mix && job.shape->mixes_levels();
  level_ = 0;
  n_grown_ = 1;
  floor_ = -std::numeric_limits<double>::infinity();
  const Transform& transform = *job.context->transform;
  needs_raw_ = job.record_raw || (job.shape->uses_log_prob() && transform.greedy());
  // One token's probability only: the full distribution takes as long as a small model's layer.
  needs_raw_prob_ = job.stop != nullptr && !needs_raw_ && !transform.keeps_raw();
  nodes_.assign(1, GrowingNode{});
  nodes_.front().token = job.tree->node(0).token;
  ranks_.resize(std::max(ranks_.size(), static_cast<std::size_t>(std::max(depth_, 1))));
  for (Ranks& ranks : ranks_) ranks.dist = kNoDistribution;
  frontier_.clear();
  if (depth_ > 0) job.shape->choose_frontier(nodes_, 0, job.budget.n_nodes, frontier_);
  if (frontier_.empty()) finish();
}

void TreeGrowth::expand(int node, LogitRow logits, double log_trust, bool same_at_depth) {
  const Context& context = *job_->context;
  const auto index = static_cast<std::size_t>(node);
  nodes_[index].expanded = true;
  const TreeShape::Children children = job_->shape->children(nodes_[index], job_->budget.n_nodes);
  const bool takes_ranks =
      job_->shape->siblings() == Siblings::top_ranks || context.transform->greedy();
  const bool may_know = same_at_depth && !context.transform->changes_logits(*context.history);
  if (takes_ranks && may_know) {
    Ranks& ranks = ranks_[static_cast<std::size_t>(nodes_[index].depth)];
    if (ranks.dist == kNoDistribution || ranks.count < children.count) {
      rank(node, show_distributions(node, logits), children.count, logits, ranks);
    } else {
      job_->tree->set_draft_prob(node, ranks.dist);
      if (job_->record_raw) job_->tree->set_raw_draft(node, ranks.raw_draft);
    }
    take_top_ranks(node, ranks, children, log_trust);
    return;
  }
  const PenalisedRow penalised = penalised_at(context, *job_->tree, node, logits, penalties_);
  const int dist = show_distributions(node, penalised.row());
  if (takes_ranks) {
    rank(node, dist, children.count, penalised.row(), ranks_.front());
    take_top_ranks(node, ranks_.front(), children, log_trust);
  } else {
    sample(node, dist, children);
  }
}

// Records the distributions after a node from its logits with bias and penalties; returns the one
// under the transform.
int TreeGrowth::show_distributions(int node, LogitRow logits) {
  DraftTree& tree = *job_->tree;
  const Transform& transform = *job_->context->transform;
  const int dist = tree.add_distribution();
  transform.distribution(logits, tree.distribution(dist));
  tree.set_draft_prob(node, dist);
  if (needs_raw_ && transform.keeps_raw()) {
    if (job_->record_raw) tree.set_raw_draft(node, dist);
  } else if (needs_raw_) {
    transform.raw_distribution(logits.values(), raw_);
    if (job_->record_raw) {
      const int raw = tree.add_distribution();
      tree.distribution(raw).assign(raw_);
      tree.set_raw_draft(node, raw);
    }
  } else if (needs_raw_prob_) {
    raw_probs_ = RawProbs(logits.values());
  }
  return dist;
}

void TreeGrowth::sample(int node, int dist, TreeShape::Children children) {
  DraftTree& tree = *job_->tree;
  // For a single child, both ways draw from the same distribution.
  const Replacement replacement =
      job_->shape->siblings() == Siblings::without_replacement && children.count > 1
          ? Replacement::without
          : Replacement::with;
  for (int child = 0; child < children.count; ++child) {
    const Distribution* left = &tree.distribution(dist);
    if (replacement == Replacement::without) left = tree.remaining_prob(node, dist, left_);
    if (left == nullptr) return;  // fewer tokens than children
    // If siblings drawn with replacement shared their noise, all would be the same token.
    const bool coupled =
        job_->noise == DraftNoise::coupled && (child == 0 || replacement == Replacement::without);
    const Draw draw = coupled ? Draw{tree.n_committed() + tree.node(node).depth, 0, Purpose::token}
                              : Draw{tree.n_committed(), tree.n_nodes(), Purpose::draft};
    const TokenId token = job_->chance->categorical(*left, draw);
    add(node, dist, replacement, token, raw_prob(dist, token), children.first_place + child);
  }
}

// The candidates for a node's children, from its distributions.
void TreeGrowth::rank(int node, int dist, int count, LogitRow logits, Ranks& ranks) {
  ranks.dist = dist;
  ranks.raw_draft = job_->tree->node(node).raw_draft;
  ranks.count = count;
  ranks.tokens.clear();
  if (count == 0) return;
  const Distribution& of_dist = job_->tree->distribution(dist);
  const bool greedy = job_->context->transform->greedy();
  likeliest_tokens(logits, count, tokens_);
  for (const TokenId token : tokens_) {
    // Truncation cuts by rank too: all later tokens have no probability either.
    if (!greedy && !(of_dist.prob(token) > 0)) return;
    Ranks::Ranked& ranked = ranks.tokens.emplace_back();
    ranked.token = token;
    if (uses_log_prob()) ranked.log_prob = portable_log((greedy ? raw_ : of_dist).prob(token));
    ranked.raw_prob = raw_prob(dist, token);
  }
}

void TreeGrowth::take_top_ranks(int node, const Ranks& ranks, TreeShape::Children children,
                                double log_trust) {
  const double above = nodes_[static_cast<std::size_t>(node)].log_prob;
  const auto n_children = std::min(static_cast<std::size_t>(children.count), ranks.tokens.size());
  for (std::size_t rank = 0; rank < n_children; ++rank) {
    const Ranks::Ranked& ranked = ranks.tokens[rank];
    // Rounding must not make a path likelier than its prefix.
    const double log_prob = above + std::min(0.0, ranked.log_prob + log_trust);
    if (log_prob < floor_) return;  // nor do all further ranks
    add(node, kPointMass, Replacement::with, ranked.token, ranked.raw_prob,
        children.first_place + static_cast<int>(rank));
    nodes_.back().log_prob = log_prob;
  }
}

// The raw probability of a node's token, if `dist` is the transformed distribution and a stop rule
// needs it.
double TreeGrowth::raw_prob(int dist, TokenId token) const {
  if (job_->stop == nullptr) return 0;
  if (needs_raw_prob_) return raw_probs_.prob(token);
  const bool keeps_raw = job_->context->transform->keeps_raw();
  return (keeps_raw ? job_->tree->distribution(dist) : raw_).prob(token);
}

void TreeGrowth::add(int node, int proposal, Replacement replacement, TokenId token,
                     double raw_prob, int place) {
  job_->tree->add_child(node, token, proposal, replacement);
  const int depth = nodes_[static_cast<std::size_t>(node)].depth + 1;
  nodes_.push_back({.place = place, .parent = node, .depth = depth, .token = token});
  nodes_.back().open = depth < depth_;
  if (job_->stop != nullptr && job_->stop->stop_after(token, raw_prob)) {
    nodes_.back().open = false;
  }
}

void TreeGrowth::next_level() {
  // Also nodes that the drafter gave no children.
  for (const int node : frontier_) nodes_[static_cast<std::size_t>(node)].open = false;
  raise_floor();
  const int first = mixes_levels_ ? 0 : n_grown_;
  n_grown_ = static_cast<int>(nodes_.size());
  frontier_.clear();
  if (++level_ < depth_ || mixes_levels_) {
    job_->shape->choose_frontier(nodes_, first, job_->budget.n_nodes, frontier_);
  }
  if (frontier_.empty()) finish();
}

void TreeGrowth::raise_floor() {
  const int n_likeliest = job_->shape->n_likeliest(job_->budget.n_nodes);
  if (n_likeliest < 1 || static_cast<int>(nodes_.size()) <= n_likeliest) return;
  log_probs_.clear();
  for (std::size_t node = 1; node < nodes_.size(); ++node) {
    log_probs_.push_back(nodes_[node].log_prob);
  }
  const auto last = log_probs_.begin() + n_likeliest - 1;
  std::nth_element(log_probs_.begin(), last, log_probs_.end(), std::greater<>());
  floor_ = *last;
}

void TreeGrowth::finish() {
  if (job_->shape->choose_kept(nodes_, job_->budget.n_nodes, origins_)) {
    job_->tree->retain(origins_);
  } else {
    origins_.resize(nodes_.size());
    std::iota(origins_.begin(), origins_.end(), 0);
  }
}

void TreeGrowth::renumber(std::vector<int>& by_node) const {
  by_node.resize(nodes_.size(), -1);
  // In ascending order no place is read after it was written.
  for (std::size_t node = 0; node < origins_.size(); ++node) {
    by_node[node] = by_node[static_cast<std::size_t>(origins_[node])];
  }
  by_node.resize(origins_.size());
}

}  // namespace outrider
