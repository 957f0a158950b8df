// SPDX-License-Identifier: Apache-2.0
#include "speculate/drafters/lookup/recycling_drafter.h"

#include <algorithm>
#include <limits>
#include <memory>

#include "base/elementary.h"
#include "speculate/tree_shapes/fixed_shape.h"

namespace outrider {

RecyclingDrafter::RecyclingDrafter(const Options& options)
    : options_(options), earlier_(std::max(options.across, 1)) {}

void RecyclingDrafter::begin(const Context& context) {
  texts_.insert_or_assign(context.id, CandidateMatrix(options_.rows));
}

void RecyclingDrafter::propose(std::span<DraftJob> jobs) {
  for (const DraftJob& job : jobs) {
    const CandidateMatrix& own = texts_.at(job.context->id);
    if (job.worth == nullptr) {
      follow_shape(job, own);
    } else {
      grow_what_pays(job, own);
    }
  }
}

std::span<const CandidateMatrix::Candidate> RecyclingDrafter::candidates(const CandidateMatrix& own,
                                                                         TokenId token) const {
  const std::span<const Candidate> row = own.row(token);
  return row.empty() ? earlier_.row(token) : row;
}

void RecyclingDrafter::follow_shape(const DraftJob& job, const CandidateMatrix& own) {
  const int depth = std::min(job.budget.depth, job.shape->depth());
  nodes_.assign(1, GrowingNode{});
  int first = 0;  // of the level above
  for (int level = 0; level < depth; ++level) {
    job.shape->choose_frontier(nodes_, first, job.budget.n_nodes, chosen_);
    first = static_cast<int>(nodes_.size());
    for (const int node : chosen_) {
      add_children(job, node, candidates(own, job.tree->node(node).token));
    }
    if (static_cast<int>(nodes_.size()) == first) break;
  }
  if (job.shape->choose_kept(nodes_, job.budget.n_nodes, chosen_)) job.tree->retain(chosen_);
}

void RecyclingDrafter::add_children(const DraftJob& job, int node, std::span<const Candidate> row) {
  const GrowingNode parent = nodes_[static_cast<std::size_t>(node)];
  const TreeShape::Children children = job.shape->children(parent, job.budget.n_nodes);
  const int count = std::min(children.count, static_cast<int>(row.size()));
  for (int rank = 0; rank < count; ++rank) {
    const Candidate& candidate = row[static_cast<std::size_t>(rank)];
    job.tree->add_child(node, candidate.token, kPointMass);
    nodes_.push_back({.place = children.first_place + rank,
                      .parent = node,
                      .depth = parent.depth + 1,
                      .token = candidate.token});
    if (!job.shape->uses_log_prob()) continue;
    nodes_.back().log_prob = parent.log_prob + std::min(0.0, portable_log(candidate.share));
  }
}

// Orders by probability; ties go to the shallower node, then to the earlier parent, then to the
// lower rank. The order must not depend on how a heap is built.
bool RecyclingDrafter::is_worse(const Node& a, const Node& b) {
  if (a.prob != b.prob) return a.prob < b.prob;
  if (a.depth != b.depth) return a.depth > b.depth;
  if (a.parent != b.parent) return a.parent > b.parent;
  return a.rank > b.rank;
}

void RecyclingDrafter::grow_what_pays(const DraftJob& job, const CandidateMatrix& own) {
  const int depth = std::min(job.budget.depth, job.shape->depth());
  const int n_nodes = std::min(job.budget.n_nodes, job.shape->n_nodes());
  DraftTree& tree = *job.tree;
  next_.clear();
  if (depth > 0) {
    push_children(job, {.depth = 0, .prob = 1}, 0, candidates(own, tree.node(0).token));
  }
  while (!next_.empty() && tree.n_drafted() < n_nodes) {
    std::pop_heap(next_.begin(), next_.end(), is_worse);
    const Node best = next_.back();
    next_.pop_back();
    if (best.prob < job.worth->price(tree.n_drafted() + 1)) {
      job.worth->refused(best.parent, best.token, best.certainty);
      return;
    }
    const int node = tree.add_child(best.parent, best.token, kPointMass);
    job.worth->drafted(best.certainty);
    if (best.depth < depth) push_children(job, best, node, candidates(own, best.token));
  }
}

// Adds the candidates after a drafted node; `parent` is its state as a candidate.
void RecyclingDrafter::push_children(const DraftJob& job, const Node& parent, int node,
                                     std::span<const Candidate> row) {
  const std::size_t count =
      job.shape->is_chain() ? std::min<std::size_t>(row.size(), 1) : row.size();
  for (std::size_t rank = 0; rank < count; ++rank) {
    const double certainty = row[rank].share;
    next_.push_back({.token = row[rank].token,
                     .parent = node,
                     .depth = parent.depth + 1,
                     .rank = static_cast<int>(rank),
                     .prob = parent.prob * job.worth->stands(certainty),
                     .certainty = certainty});
    std::push_heap(next_.begin(), next_.end(), is_worse);
  }
}

void RecyclingDrafter::observe(std::span<const RoundResult> results) {
  for (const RoundResult& result : results) {
    CandidateMatrix& own = texts_.at(result.context->id);
    const DraftTree& tree = *result.tree;
    const std::vector<int>& path = result.verdict->path;
    n_standing_.assign(static_cast<std::size_t>(tree.n_nodes()), 0);
    for (const int node : path) {
      n_standing_[static_cast<std::size_t>(node)] = tree.node(node).depth;
    }
    for (int node = 1; node < tree.n_nodes(); ++node) {
      int& n_standing = n_standing_[static_cast<std::size_t>(node)];
      if (n_standing > 0) continue;  // it was accepted itself
      n_standing = n_standing_[static_cast<std::size_t>(tree.node(node).parent)];
      recycle(result, node, n_standing, own);
    }
    recycle(result, 0, 0, own);
    for (const int node : path) recycle(result, node, tree.node(node).depth, own);
  }
}

// Writes the row of a node's token from the target's logits after the node.
void RecyclingDrafter::recycle(const RoundResult& result, int node, int n_standing,
                               CandidateMatrix& own) {
  const std::span<const TokenLogit> likeliest =
      guesses_.likeliest_behind(result, node, n_standing, options_.n_candidates);
  const float largest = likeliest.front().logit;
  // The grammar allows nothing here; its state is the one after the round.
  if (largest == -std::numeric_limits<float>::infinity()) return;
  row_.clear();
  double total = 0;
  for (const TokenLogit& one : likeliest) {
    // The first one and its ties weigh 1, also if the logits are not finite.
    const bool is_first = row_.empty() || one.logit == largest;
    const double weight = is_first ? 1 : portable_exp(static_cast<double>(one.logit) - largest);
    total += weight;
    row_.push_back({one.token, static_cast<float>(weight)});
  }
  for (Candidate& candidate : row_) {
    candidate.share = static_cast<float>(candidate.share / total);
  }
  own.write(result.tree->node(node).token, row_);
}

void RecyclingDrafter::end(SequenceId id) {
  const auto text = texts_.find(id);
  if (text == texts_.end()) return;
  if (options_.across > 0) earlier_.write_all(text->second);
  texts_.erase(text);
}

DrafterPlan read_recycling_drafter(const Spec& spec) {
  spec.require_no_value();
  RecyclingDrafter::Options options;
  options.n_candidates =
      spec.integer("k", 1, RecyclingDrafter::kMaxCandidates).value_or(options.n_candidates);
  options.rows = spec.integer("rows", 1, RecyclingDrafter::kMaxRows).value_or(options.rows);
  options.across = spec.integer("across", 0, RecyclingDrafter::kMaxRows).value_or(options.across);
  return {.traits = {},
          .shape = std::make_shared<FixedShape>(recycling_tree(), Siblings::top_ranks),
          .make = [options](const DrafterMaterials&) {
            return std::make_unique<RecyclingDrafter>(options);
          }};
}

}  // namespace outrider
