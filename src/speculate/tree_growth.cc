#include "speculate/tree_growth.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "base/elementary.h"
#include "sampling/penalised_row.h"

namespace outrider {

namespace {

// The drafter's logits behind a node with bias and penalties.
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
    raw_draft->become(draft_prob);
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
  // Of one token: the distribution of all would take as long as a small model's layer.
  needs_raw_prob_ = job.stop != nullptr && !needs_raw_ && !transform.keeps_raw();
  nodes_.assign(1, GrowingNode{});
  nodes_.front().token = job.tree->node(0).token;
  frontier_.clear();
  if (depth_ > 0) job.shape->choose_frontier(nodes_, 0, job.budget.n_nodes, frontier_);
  if (frontier_.empty()) finish();
}

void TreeGrowth::expand(int node, LogitRow logits, double log_trust) {
  DraftTree& tree = *job_->tree;
  const Transform& transform = *job_->context->transform;
  const PenalisedRow penalised = penalised_at(*job_->context, tree, node, logits, penalties_);
  const int law = tree.add_distribution();
  transform.distribution(penalised.row(), tree.distribution(law));
  tree.set_draft_prob(node, law);
  if (needs_raw_ && transform.keeps_raw()) {
    if (job_->record_raw) tree.set_raw_draft(node, law);
  } else if (needs_raw_) {
    transform.raw_distribution(penalised.row().values(), raw_);
    if (job_->record_raw) {
      const int raw = tree.add_distribution();
      tree.distribution(raw).become(raw_);
      tree.set_raw_draft(node, raw);
    }
  } else if (needs_raw_prob_) {
    raw_probs_ = RawProbs(penalised.row().values());
  }
  const TreeShape::Children children =
      job_->shape->children(nodes_[static_cast<std::size_t>(node)], job_->budget.n_nodes);
  if (job_->shape->siblings() == Siblings::top_ranks || transform.greedy()) {
    take_top_ranks(node, law, children, penalised.row(), log_trust);
  } else {
    sample(node, law, children);
  }
  nodes_[static_cast<std::size_t>(node)].expanded = true;
}

void TreeGrowth::sample(int node, int law, TreeShape::Children children) {
  DraftTree& tree = *job_->tree;
  // An only child is drawn from the law itself either way.
  const Draws draws = job_->shape->siblings() == Siblings::without_replacement && children.count > 1
                          ? Draws::without_replacement
                          : Draws::with_replacement;
  for (int child = 0; child < children.count; ++child) {
    const Distribution* left = &tree.distribution(law);
    if (draws == Draws::without_replacement) left = tree.remaining_prob(node, law, left_);
    if (left == nullptr) return;  // fewer tokens than children
    // Drawn with replacement, siblings that shared their noise would all be the same token.
    const bool coupled =
        job_->noise == DraftNoise::coupled && (child == 0 || draws == Draws::without_replacement);
    const Draw draw = coupled ? Draw{tree.n_committed() + tree.node(node).depth, 0, Purpose::token}
                              : Draw{tree.n_committed(), tree.n_nodes(), Purpose::draft};
    add(node, law, law, draws, job_->chance->categorical(*left, draw),
        children.first_place + child);
  }
}

void TreeGrowth::take_top_ranks(int node, int law, TreeShape::Children children, LogitRow logits,
                                double log_trust) {
  if (children.count == 0) return;
  const bool greedy = job_->context->transform->greedy();
  likeliest_tokens(logits, children.count, tokens_);
  for (std::size_t rank = 0; rank < tokens_.size(); ++rank) {
    // Truncation cuts by rank as well: nothing that follows has a probability either.
    if (!greedy && !(job_->tree->distribution(law).prob(tokens_[rank]) > 0)) return;
    double log_prob = 0;
    if (uses_log_prob()) {
      const double prob = (greedy ? raw_ : job_->tree->distribution(law)).prob(tokens_[rank]);
      // Rounding must not make a path likelier than its beginning.
      log_prob = nodes_[static_cast<std::size_t>(node)].log_prob +
                 std::min(0.0, portable_log(prob) + log_trust);
      if (log_prob < floor_) return;  // and so are those of all further ranks
    }
    add(node, law, kPointMass, Draws::with_replacement, tokens_[rank],
        children.first_place + static_cast<int>(rank));
    nodes_.back().log_prob = log_prob;
  }
}

// Of a node's token by the raw distribution, where `law` is the one under the transform.
double TreeGrowth::raw_prob(int law, TokenId token) const {
  if (needs_raw_prob_) return raw_probs_.prob(token);
  const bool is_law = job_->context->transform->keeps_raw();
  return (is_law ? job_->tree->distribution(law) : raw_).prob(token);
}

void TreeGrowth::add(int node, int law, int proposal, Draws draws, TokenId token, int place) {
  job_->tree->add_child(node, token, proposal, draws);
  const int depth = nodes_[static_cast<std::size_t>(node)].depth + 1;
  nodes_.push_back({.place = place, .parent = node, .depth = depth, .token = token});
  nodes_.back().open = depth < depth_;
  if (job_->stop != nullptr && job_->stop->stop_after(token, raw_prob(law, token))) {
    nodes_.back().open = false;
  }
}

void TreeGrowth::next_level() {
  // Also those that the drafter gave no children.
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
  // Ascending: no place is read after it was written.
  for (std::size_t node = 0; node < origins_.size(); ++node) {
    by_node[node] = by_node[static_cast<std::size_t>(origins_[node])];
  }
  by_node.resize(origins_.size());
}

}  // namespace outrider
