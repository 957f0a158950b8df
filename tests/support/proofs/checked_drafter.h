// SPDX-License-Identifier: Apache-2.0
// Wraps a drafter and checks whether every draft fits its job. Records the drafter's distributions
// after each prefix.
#ifndef OUTRIDER_TESTS_SUPPORT_PROOFS_CHECKED_DRAFTER_H_
#define OUTRIDER_TESTS_SUPPORT_PROOFS_CHECKED_DRAFTER_H_

#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "speculate/acceptances/acceptance.h"
#include "speculate/drafters/forwarding_drafter.h"

namespace outrider::test {

// Forwards to another drafter and checks its drafts.
class CheckedDrafter final : public ForwardingDrafter {
 public:
  CheckedDrafter(Drafter& drafter, int vocabulary_size)
      : ForwardingDrafter(drafter), vocabulary_size_(vocabulary_size) {}

  void propose(std::span<DraftJob> jobs) override {
    inner().propose(jobs);
    for (const DraftJob& job : jobs) {
      check(job);
      n_drafted_ += job.tree->n_drafted();
      contexts_[job.tree].assign(job.context->tokens.begin(), job.context->tokens.end());
    }
  }
  bool draft_at(const Context& context, const DraftTree& tree, int node, Distribution& draft_prob,
                Distribution* raw_draft) override {
    const bool known = inner().draft_at(context, tree, node, draft_prob, raw_draft);
    expect(!known || traits().has_draft_prob, "no distribution without the trait");
    return known;
  }

  // The first violation; empty: none.
  const std::string& violation() const { return violation_; }
  std::int64_t n_drafted() const { return n_drafted_; }
  // The context for which a tree was drafted.
  const std::vector<TokenId>& context_of(const DraftTree& tree) const {
    return contexts_.at(&tree);
  }

 private:
  void expect(bool holds, const char* what) {
    if (!holds && violation_.empty()) violation_ = what;
  }
  void check_distribution(const Distribution& dist) {
    const double sum = std::accumulate(dist.probs.begin(), dist.probs.end(), 0.0);
    expect(std::abs(sum - 1) < 1e-9, "distributions that sum to 1");
    for (std::size_t index = 0; index < dist.ids.size(); ++index) {
      expect(dist.ids[index] >= 0 && dist.ids[index] < vocabulary_size_,
             "distributions over the target's vocabulary");
      expect(index == 0 || dist.ids[index - 1] < dist.ids[index],
             "distributions with ids ascending");
    }
  }
  void check(const DraftJob& job) {
    const DraftTree& tree = *job.tree;
    const DrafterTraits its = traits();
    expect(tree.n_committed() == static_cast<std::int64_t>(job.context->tokens.size()) &&
               tree.node(0).token == job.context->tokens.back(),
           "the root that it was given");
    expect(tree.n_drafted() <= job.budget.n_nodes, "as many nodes as the budget has");
    expect(tree.n_nodes() - 1 <= kMaxDraftNodes, "no wider pass than one of prefill");
    expect(!job.shape->is_chain() || tree.is_chain(), "a chain where the shape is one");
    for (int index = 0; index < tree.n_nodes(); ++index) {
      const DraftNode& node = tree.node(index);
      expect(
          node.depth <= (index <= tree.n_drafted() ? job.budget.depth : job.budget.scratch_depth),
          "depths within the budget");
      expect(index == 0 || (node.token >= 0 && node.token < vocabulary_size_),
             "tokens of the target's vocabulary");
      expect(its.has_draft_prob || node.draft_prob == kNoDistribution,
             "no distributions without the trait has_draft_prob");
      const bool expanded = tree.next_child(index, index) >= 0;
      expect(!its.has_draft_prob || !expanded || node.draft_prob != kNoDistribution,
             "a distribution wherever there are children");
      expect(!job.record_raw ||
                 (node.draft_prob == kNoDistribution) == (node.raw_draft == kNoDistribution),
             "raw distributions beside the others where they are asked for");
      if (node.draft_prob != kNoDistribution)
        check_distribution(tree.distribution(node.draft_prob));
    }
  }

  int vocabulary_size_;
  std::string violation_;
  std::int64_t n_drafted_ = 0;
  std::map<const DraftTree*, std::vector<TokenId>> contexts_;
};

// A drafter's distributions after each prefix.
struct DraftDistributions {
  struct OfPrefix {
    Distribution draft_prob;
    Distribution raw_draft;  // empty if it was not requested
  };
  std::map<std::vector<TokenId>, OfPrefix> dists;
  bool consistent = true;  // never two different ones for the same prefix

  void add(const std::vector<TokenId>& prefix, const Distribution& draft_prob,
           const Distribution* raw_draft) {
    const auto [at, is_new] = dists.try_emplace(prefix);
    if (is_new) {
      at->second.draft_prob = draft_prob;
    } else if (at->second.draft_prob.ids != draft_prob.ids ||
               at->second.draft_prob.probs != draft_prob.probs) {
      consistent = false;
    }
    if (raw_draft != nullptr) at->second.raw_draft = *raw_draft;
  }
};

// Forwards to another acceptance and records the drafter's distributions: those in the trees and
// those requested at leaves. If the drafter's distributions depend on where a round begins, it
// records only the first round.
class RecordingAcceptance final : public Acceptance {
 public:
  RecordingAcceptance(const Acceptance& acceptance, const CheckedDrafter& drafter,
                      DraftDistributions& dists, std::int64_t n_prompt)
      : acceptance_(&acceptance), drafter_(&drafter), dists_(&dists), n_prompt_(n_prompt) {}
  std::string_view name() const override { return acceptance_->name(); }
  DraftNoise draft_noise() const override { return acceptance_->draft_noise(); }
  RuleNeeds needs() const override { return acceptance_->needs(); }
  bool prefix_determined() const override { return acceptance_->prefix_determined(); }
  bool chains_only() const override { return acceptance_->chains_only(); }
  void verify(const DraftTree& tree, NodeViews& views, Chance& chance,
              Verdict& verdict) const override {
    acceptance_->verify(tree, views, chance, verdict);
    if (!drafter_->traits().prefix_determined && tree.n_committed() != n_prompt_) return;
    for (int node = 0; node < tree.n_nodes(); ++node) {
      if (tree.node(node).draft_prob != kNoDistribution) add(tree, views, node);
    }
    if (needs().leaf_draft) add(tree, views, verdict.path.empty() ? 0 : verdict.path.back());
  }

 private:
  void add(const DraftTree& tree, NodeViews& views, int node) const {
    const Distribution* draft_prob = views.draft(node);
    if (draft_prob == nullptr) return;
    std::vector<TokenId> prefix = drafter_->context_of(tree);
    std::vector<TokenId> path;
    tree.path_tokens(node, path);
    prefix.insert(prefix.end(), path.begin(), path.end());
    dists_->add(prefix, *draft_prob, views.raw_draft(node));
  }

  const Acceptance* acceptance_;
  const CheckedDrafter* drafter_;
  DraftDistributions* dists_;
  std::int64_t n_prompt_;
};

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_PROOFS_CHECKED_DRAFTER_H_
