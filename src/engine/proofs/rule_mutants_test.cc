// SPDX-License-Identifier: Apache-2.0
// The enumeration of rule_exactness_test.cc with one step of a rule or its verification broken at a
// time: each must be noticed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/speculation.h"
#include "sampling/divergence.h"
#include "speculate/acceptances/block.h"
#include "speculate/acceptances/multi_round.h"
#include "speculate/rules/make_rule.h"
#include "speculate/tree_shapes/fixed_shape.h"
#include "tests/support/proofs/exactness.h"
#include "tests/support/proofs/forwarding_views.h"
#include "tests/support/proofs/rule_pair.h"
#include "tests/support/proofs/rule_process.h"

namespace outrider {
namespace {

using test::distance;
using test::enumerate_rule;
using test::ForwardingViews;
using test::kCaught;
using test::rule_process;
using test::RulePair;
using test::RuleTrial;
using test::transforms;
using test::trial_of;

// The largest error of a rule under an acceptance, over transforms and seeds.
double worst_error(const Rule& rule, const Acceptance& acceptance,
                   const std::shared_ptr<const TreeShape>& shape = nullptr) {
  double worst = 0;
  for (const auto& [name, sampling] : transforms()) {
    for (std::uint32_t seed = 1; seed <= 4; ++seed) {
      RulePair pair(seed);
      RuleTrial trial = trial_of(pair, rule, acceptance, 2, sampling);
      trial.trial.shape = shape;
      worst = std::max(worst, distance(enumerate_rule(trial).dist, rule_process(trial).dist));
    }
  }
  return worst;
}

class SwappedViews final : public ForwardingViews {
 public:
  using ForwardingViews::ForwardingViews;
  const Distribution& target(int node) override { return views_->raw_target(node); }
  const Distribution* draft(int node) override { return views_->raw_draft(node); }
  const Distribution& raw_target(int node) override { return views_->target(node); }
  const Distribution* raw_draft(int node) override { return views_->draft(node); }
};

// Decides on transformed distributions instead of raw ones.
class DecidesOnTransformed final : public ForwardingViews {
 public:
  using ForwardingViews::ForwardingViews;
  const Distribution& raw_target(int node) override { return views_->target(node); }
  const Distribution* raw_draft(int node) override { return views_->draft(node); }
};

// The rule with other views.
template <class Views>
class RuleThrough final : public Rule {
 public:
  explicit RuleThrough(std::shared_ptr<const Rule> rule) : rule_(std::move(rule)) {}
  const char* name() const override { return "mutant"; }
  RuleNeeds needs() const override {
    RuleNeeds needs = rule_->needs();
    needs.raw_draft = true;
    return needs;
  }
  void rule_prob(NodeViews& views, int node, Distribution& out) const override {
    Views changed(views);
    rule_->rule_prob(changed, node, out);
  }

 private:
  std::shared_ptr<const Rule> rule_;
};

TEST(RuleMutants, RawAndTransformedSwapped) {
  for (const char* spec : {"chow:alpha=0.4", "diff:alpha=0.1", "token-v3:alpha=0.5",
                           "token-v1:alpha=0.3", "lossy:alpha=0.3", "budget:kl=0.1"}) {
    const auto rule = make_rule(std::string(spec));
    const auto mutant = make_multi_round(std::make_shared<RuleThrough<SwappedViews>>(rule));
    EXPECT_GT(worst_error(*rule, *mutant), kCaught) << spec;
  }
}

TEST(RuleMutants, DecisionsOnTransformedDistributions) {
  for (const char* spec : {"chow:alpha=0.4", "diff:alpha=0.1", "opt:alpha=0.3",
                           "token-v1:alpha=0.3", "token-v2:alpha=0.2", "token-v3:alpha=0.5"}) {
    const auto rule = make_rule(std::string(spec));
    const auto mutant = make_multi_round(std::make_shared<RuleThrough<DecidesOnTransformed>>(rule));
    EXPECT_GT(worst_error(*rule, *mutant), kCaught) << spec;
  }
}

struct BonusSkipsTransform : MultiRoundSteps {
  static void leaf_prob(const Rule& rule, NodeViews& views, int leaf, Distribution& out) {
    SwappedViews raw(views);
    rule.rule_prob(raw, leaf, out);
  }
};
struct ResidualNotRenormalised : MultiRoundSteps {
  static double reject(Distribution& rule_prob, const Distribution& proposal) {
    return test::subtract_without_normalising(rule_prob, proposal);
  }
};

TEST(RuleMutants, BonusSkipsTheTransform) {
  for (const char* spec : {"diff:alpha=0.1", "token-v1:alpha=0.3"}) {
    const auto rule = make_rule(std::string(spec));
    EXPECT_GT(worst_error(*rule, MultiRound<BonusSkipsTransform>(rule)), kCaught) << spec;
  }
}

TEST(RuleMutants, BonusFromTheTarget) {
  for (const char* spec : {"chow:alpha=0.4", "token-v3:alpha=0.5", "lossy:alpha=0.3"}) {
    const auto rule = make_rule(std::string(spec));
    const Verification mutant = make_verification(std::string(spec) + ",bonus=target", "exact");
    EXPECT_GT(worst_error(*rule, *mutant.acceptance), kCaught) << spec;
    EXPECT_FALSE(mutant.acceptance->prefix_determined());
  }
}

TEST(RuleMutants, ResidualNotRenormalised) {
  for (const char* spec : {"lossy:alpha=0.3", "lenience:eps=0.6", "token-v3:alpha=0.5"}) {
    const auto rule = make_rule(std::string(spec));
    EXPECT_GT(worst_error(*rule, MultiRound<ResidualNotRenormalised>(rule)), kCaught) << spec;
  }
}

// Uses lemma 2's map as a distribution at beta = 1, where it sums to more than 1.
class LossyNotNormalised final : public Rule {
 public:
  const char* name() const override { return "mutant"; }
  RuleNeeds needs() const override { return {.draft_prob = true, .leaf_draft = true}; }
  void rule_prob(NodeViews& views, int node, Distribution& out) const override {
    out.clear();
    for_each_in_either(
        *views.draft(node), views.target(node), [&](TokenId id, double in_draft, double in_target) {
          out.ids.push_back(id);
          out.probs.push_back(std::max(std::min(in_draft, in_target / (1 - 0.3)), in_target));
        });
  }
};

TEST(RuleMutants, LossyMapNotNormalised) {
  const auto rule = make_rule(std::string("lossy:alpha=0.3"));
  EXPECT_GT(worst_error(*rule, *make_multi_round(std::make_shared<LossyNotNormalised>())), kCaught);
}

// Replaces the drafter's distribution at every node.
class OtherDraft final : public ForwardingViews {
 public:
  OtherDraft(NodeViews& views, const Distribution& draft) : ForwardingViews(views), draft_(draft) {}
  const Distribution* draft(int) override { return &draft_; }

 private:
  const Distribution& draft_;
};

// Remembers the last call of the rule, for the step below.
class Remembering final : public Rule {
 public:
  explicit Remembering(std::shared_ptr<const Rule> rule) : rule_(std::move(rule)) {}
  const char* name() const override { return "mutant"; }
  RuleNeeds needs() const override { return rule_->needs(); }
  void rule_prob(NodeViews& views, int node, Distribution& out) const override {
    rule_->rule_prob(views, node, out);
    asked = {rule_.get(), &views, node};
  }
  struct Asked {
    const Rule* rule = nullptr;
    NodeViews* views = nullptr;
    int node = 0;
  };
  static Asked asked;

 private:
  std::shared_ptr<const Rule> rule_;
};
Remembering::Asked Remembering::asked;

// Computes the rule again for each sibling, from the draft_prob that earlier siblings left: the
// distribution from which it was drawn.
struct RecomputedOnModifiedDraft : MultiRoundSteps {
  static double reject(Distribution& rule_prob, const Distribution& proposal) {
    const Remembering::Asked at = Remembering::asked;
    OtherDraft views(*at.views, proposal);
    Distribution recomputed;
    at.rule->rule_prob(views, at.node, recomputed);
    const double mass = subtract_and_normalise(recomputed, proposal);
    if (mass > 0) rule_prob = recomputed;
    return mass;
  }
};

TEST(RuleMutants, RuleRecomputedOnModifiedDraft) {
  const auto shape =
      std::make_shared<FixedShape>(std::vector<int>{2}, Siblings::without_replacement);
  for (const char* spec : {"token-v3:alpha=0.5", "lossy:alpha=0.3"}) {
    const auto rule = make_rule(std::string(spec));
    const MultiRound<RecomputedOnModifiedDraft> mutant(std::make_shared<Remembering>(rule));
    EXPECT_GT(worst_error(*rule, mutant, shape), kCaught) << spec;
  }
}

}  // namespace
}  // namespace outrider
