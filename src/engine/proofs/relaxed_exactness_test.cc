// SPDX-License-Identifier: Apache-2.0
// Relaxed acceptance by enumeration: compares the loop's output with a plain form of the rule,
// which finds the marks by reading the whole text at every position.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "speculate/acceptances/multi_round.h"
#include "speculate/rules/make_rule.h"
#include "speculate/rules/relaxed.h"
#include "speculate/rules/target_bonus.h"
#include "speculate/tree_shapes/fixed_shape.h"
#include "tests/support/proofs/exactness.h"
#include "tests/support/proofs/forwarding_views.h"
#include "tests/support/proofs/rule_pair.h"
#include "tests/support/proofs/rule_process.h"
#include "tests/support/proofs/written_text.h"

namespace outrider {
namespace {

using test::distance;
using test::enumerate_rule;
using test::FixedViews;
using test::ForwardingViews;
using test::kCaught;
using test::kExact;
using test::rule_process;
using test::RuleOutcome;
using test::RulePair;
using test::RuleTrial;
using test::transforms;
using test::write_text;

using Tokens = std::vector<TokenId>;

constexpr TokenId kOpen = 1;
constexpr TokenId kClose = 3;

std::optional<TokenId> find(std::string_view spelling) {
  if (spelling == "<think>") return kOpen;
  if (spelling == "</think>") return kClose;
  return std::nullopt;
}

struct Settings {
  int top = 2;
  double delta = 0.4;
};

// The rule of its source, for distributions.
class Naive final : public Rule {
 public:
  explicit Naive(const Settings& settings) : settings_(settings) {}
  const char* name() const override { return "naive"; }
  RuleNeeds needs() const override { return {.draft_prob = true, .leaf_draft = true}; }
  void rule_prob(NodeViews& views, int node, Distribution& out) const override {
    const Distribution& target = views.target(node);
    const Distribution* draft = views.draft(node);
    out = target;
    if (draft == nullptr || !views.is_open(node, kOpen, kClose)) return;
    std::vector<double> dist(4, 0.0);
    double left = 0;
    for (std::size_t i = 0; i < draft->ids.size(); ++i) {
      if (accepts(views.raw_target(node), draft->ids[i])) {
        dist[static_cast<std::size_t>(draft->ids[i])] += draft->probs[i];
      } else {
        left += draft->probs[i];
      }
    }
    for (std::size_t i = 0; i < target.ids.size(); ++i) {
      dist[static_cast<std::size_t>(target.ids[i])] += left * target.probs[i];
    }
    out = Distribution::dense(dist);
  }
  double deferral(NodeViews& views, int node, const Distribution&) const override {
    const Distribution* draft = views.draft(node);
    if (draft == nullptr || !views.is_open(node, kOpen, kClose)) return 1;
    double left = 0;
    for (std::size_t i = 0; i < draft->ids.size(); ++i) {
      if (!accepts(views.raw_target(node), draft->ids[i])) left += draft->probs[i];
    }
    return left;
  }

 private:
  bool accepts(const Distribution& raw, TokenId token) const {
    const double prob = raw.prob(token);
    int n_above = 0;
    double best = 0;
    for (const double other : raw.probs) {
      n_above += other > prob ? 1 : 0;
      best = std::max(best, other);
    }
    return prob > 0 && n_above < settings_.top && prob > best - settings_.delta;
  }
  Settings settings_;
};

// The views after the prompt and the emitted tokens, with the marks read from the start.
FixedViews views_behind(RulePair& pair, const SamplingParams& sampling, const Tokens& prompt,
                        const Tokens& emitted) {
  FixedViews views =
      test::views_behind({.trial = {.target = &pair.target, .sampling = sampling, .prompt = prompt},
                          .draft_table = &pair.draft_table},
                         emitted);
  for (const Tokens* part : {&prompt, &emitted}) {
    for (const TokenId token : *part) {
      if (token == kOpen || token == kClose) views.open = token == kOpen;
    }
  }
  return views;
}

double error_of(const Rule& naive, const Acceptance& acceptance, const SamplingParams& sampling,
                std::uint32_t seed, const Tokens& prompt,
                const std::shared_ptr<const TreeShape>& shape) {
  RulePair pair(seed, 4);
  RuleTrial trial{
      .trial = {.target = &pair.target,
                .drafter = &pair.drafter,
                .acceptance = &acceptance,
                .shape = shape,
                .sampling = sampling,
                .prompt = prompt,
                .n_tokens = 3},
      .draft_table = &pair.draft_table,
      .views = [&](const Tokens& emitted) { return views_behind(pair, sampling, prompt, emitted); },
      .rule = &naive,
      .first_round_only = !shape->is_chain()};
  const RuleOutcome emitted = enumerate_rule(trial);
  const RuleOutcome expected = rule_process(trial);
  EXPECT_NEAR(emitted.weight, 1.0, kExact);
  double worst = distance(emitted.dist, expected.dist);
  worst = std::max(worst, std::abs(emitted.cost.total_variation - expected.cost.total_variation));
  return std::max(worst, std::abs(emitted.cost.deferral - expected.cost.deferral));
}

double worst_error(const Rule& naive, const Acceptance& acceptance, int n_seeds,
                   const std::vector<std::shared_ptr<const TreeShape>>& shapes) {
  double worst = 0;
  for (const auto& [name, sampling] : transforms()) {
    for (const Tokens& prompt : {Tokens{0, 2}, Tokens{kOpen, 2}, Tokens{kOpen, kClose, 0}}) {
      for (const auto& shape : shapes) {
        for (int seed = 1; seed <= n_seeds; ++seed) {
          worst = std::max(worst, error_of(naive, acceptance, sampling,
                                           static_cast<std::uint32_t>(seed), prompt, shape));
        }
      }
    }
  }
  return worst;
}

std::vector<std::shared_ptr<const TreeShape>> shapes_for(std::string_view verify) {
  std::vector<std::shared_ptr<const TreeShape>> shapes = {chain_shape(2)};
  if (verify != "block") {
    shapes.push_back(
        std::make_shared<FixedShape>(std::vector<int>{2, 1}, Siblings::without_replacement));
    shapes.push_back(std::make_shared<FixedShape>(std::vector<int>{2, 2}, Siblings::top_ranks));
  }
  return shapes;
}

class Relaxed : public ::testing::TestWithParam<const char*> {};

TEST_P(Relaxed, EmitsItsOwnProcess) {
  for (const auto& [spec, settings] : {std::pair{"relaxed:top=2,delta=0.4,bonus=rule", Settings{}},
                                       {"relaxed:top=3,delta=1,bonus=rule", {3, 1}},
                                       {"relaxed:top=1,bonus=rule", {1, 0.6}}}) {
    const Verification verification = make_verification(spec, GetParam(), find);
    EXPECT_LT(worst_error(Naive(settings), *verification.acceptance, 2, shapes_for(GetParam())),
              kExact)
        << spec;
  }
}

INSTANTIATE_TEST_SUITE_P(, Relaxed, ::testing::Values("exact", "block", "traversal", "coupled"),
                         [](const auto& info) { return std::string(info.param); });

// --- One step broken at a time ---------------------------------------------------------------

enum class Reading { always_open, never_open, of_the_text_alone, of_the_draft_alone };

// The rule, with another reading of the marks.
class Misreading final : public Rule {
 public:
  explicit Misreading(Reading reading) : reading_(reading) {}
  const char* name() const override { return "mutant"; }
  RuleNeeds needs() const override { return rule_.needs(); }
  void rule_prob(NodeViews& views, int node, Distribution& out) const override {
    Views changed(views, reading_);
    rule_.rule_prob(changed, node, out);
  }

 private:
  class Views final : public ForwardingViews {
   public:
    Views(NodeViews& views, Reading reading) : ForwardingViews(views), reading_(reading) {}
    bool is_open(int node, TokenId open, TokenId close) override {
      if (reading_ == Reading::always_open) return true;
      if (reading_ == Reading::never_open) return false;
      if (reading_ == Reading::of_the_text_alone) return views_->is_open(0, open, close);
      return node != 0 && views_->is_open(node, open, close);
    }

   private:
    Reading reading_;
  };
  RelaxedRule rule_{2, 0.4, {.open = kOpen, .close = kClose}};
  Reading reading_;
};

TEST(RelaxedMutants, AreCaught) {
  const Naive naive({.top = 2, .delta = 0.4});
  const auto error_of_rule = [&naive](std::shared_ptr<const Rule> rule) {
    return worst_error(naive, *make_multi_round(std::move(rule)), 2, {chain_shape(2)});
  };
  for (const Reading reading : {Reading::always_open, Reading::never_open,
                                Reading::of_the_text_alone, Reading::of_the_draft_alone}) {
    EXPECT_GT(error_of_rule(std::make_shared<Misreading>(reading)), kCaught)
        << static_cast<int>(reading);
  }
  const auto other = [](int top, double delta, TokenId open, TokenId close) {
    return std::make_shared<RelaxedRule>(top, delta, ThinkingMarks{.open = open, .close = close});
  };
  EXPECT_LT(error_of_rule(other(2, 0.4, kOpen, kClose)), kExact);
  EXPECT_GT(error_of_rule(other(3, 0.4, kOpen, kClose)), kCaught);  // ignores top
  EXPECT_GT(error_of_rule(other(2, 1, kOpen, kClose)), kCaught);    // ignores delta
  EXPECT_GT(error_of_rule(other(2, 0.4, kClose, kOpen)), kCaught);
  EXPECT_GT(error_of_rule(other(2, 0.4, kOpen, kNoToken)), kCaught);  // thinking never ends
  EXPECT_GT(error_of_rule(std::make_shared<TargetBonus>(
                std::make_unique<RelaxedRule>(2, 0.4, ThinkingMarks{kOpen, kClose}))),
            kCaught);
}

// --- Where it cannot apply -------------------------------------------------------------------

// At delta 0, without marks in the text, and without marks at all, it is the exact rule draw for
// draw, under any verification.
TEST_P(Relaxed, IsTheExactRuleWhereItCannotApply) {
  const FindToken nowhere = [](std::string_view spelling) -> std::optional<TokenId> {
    return spelling == "<think>" ? 100 : 101;
  };
  const Verification exact = make_verification("exact", GetParam());
  const Verification no_delta = make_verification("relaxed:delta=0", GetParam(), find);
  const Verification no_marks = make_verification("relaxed:delta=1", GetParam(), nowhere);
  const Verification unread = make_verification("relaxed:delta=1", GetParam());
  const Verification relaxed = make_verification("relaxed:delta=1", GetParam(), find);
  int n_others = 0;
  for (const auto& shape : shapes_for(GetParam())) {
    for (const auto& [name, sampling] : transforms()) {
      for (std::uint64_t seed = 1; seed <= 6; ++seed) {
        RulePair pair(static_cast<std::uint32_t>(seed), 5);
        const auto text = [&, &sampling = sampling](const Verification& verification) {
          return write_text(pair, *verification.acceptance, shape, sampling, {kOpen, 2}, seed)
              .tokens;
        };
        const Tokens expected = text(exact);
        for (const Verification* verification : {&no_delta, &no_marks, &unread}) {
          EXPECT_EQ(text(*verification), expected) << name;
        }
        n_others += text(relaxed) == expected ? 0 : 1;
      }
    }
  }
  EXPECT_GT(n_others, 10);
}

}  // namespace
}  // namespace outrider
