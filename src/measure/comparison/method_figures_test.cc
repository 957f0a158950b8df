// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "measure/comparison/method_bounds.h"
#include "outrider/method_report.h"
#include "tests/support/made_comparison.h"
#include "tests/support/near.h"

namespace outrider {
namespace {

using test::made_comparison;
using test::near;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// The figures of the method (not of plain decoding) in that category.
const MethodFigures& of(const std::vector<MethodFigures>& figures, const std::string& category,
                        std::size_t method = 1) {
  for (const MethodFigures& one : figures) {
    if (one.method == method && one.category == category) return one;
  }
  throw std::runtime_error("no figures of " + category);
}

TEST(MethodFigures, OfHandMadeRecords) {
  const std::vector<MethodFigures> figures = method_figures(made_comparison());
  ASSERT_EQ(figures.size(), 6U);                     // two methods, two categories and all
  EXPECT_EQ(figures[3].category, "hard, \"very\"");  // the slowest first
  EXPECT_EQ(figures[4].category, "easy");
  EXPECT_EQ(figures[5].category, "");

  const MethodFigures& easy = of(figures, "easy");
  EXPECT_EQ(easy.n_prompts, 1);
  EXPECT_DOUBLE_EQ(easy.speedup.value, 2);
  EXPECT_DOUBLE_EQ(easy.tau.value, 2);
  EXPECT_DOUBLE_EQ(easy.tokens_per_second.value, 20);
  EXPECT_DOUBLE_EQ(easy.first_token_ratio.value, 2);
  EXPECT_DOUBLE_EQ(easy.request_speedup.value, 1.1 / 0.7);
  EXPECT_TRUE(std::isnan(easy.speedup.low));  // a single prompt has no spread

  const MethodFigures& all = of(figures, "");
  EXPECT_EQ(all.n_prompts, 2);
  EXPECT_DOUBLE_EQ(all.speedup.value, 3.0 / 3.0);
  EXPECT_DOUBLE_EQ(all.tau.value, 30.0 / 25);
  EXPECT_DOUBLE_EQ(all.tokens_per_second.value, (20 + 8) / 2.0);
  EXPECT_DOUBLE_EQ(all.draft_share.value, 0.6 / 3);
  EXPECT_DOUBLE_EQ(all.target_share.value, 1.8 / 3);
  EXPECT_DOUBLE_EQ(all.verify_share.value, 0.3 / 3);
  EXPECT_TRUE(near(all.rest_share.value, 0.3 / 3, 1e-15));
  EXPECT_THAT(all.accepted_lengths, ElementsAre(20, 5));
  ASSERT_EQ(all.places.size(), 2U);
  EXPECT_EQ(all.places[0].n_reached, 25);
  EXPECT_EQ(all.places[0].n_stood, 5);
  EXPECT_DOUBLE_EQ(all.places[0].acceptance.value, 0.2);
  EXPECT_EQ(all.places[1].n_reached, 5);
  EXPECT_EQ(all.places[1].n_stood, 0);
  EXPECT_TRUE(all.has_alphas);
  EXPECT_TRUE(all.promises_same_text);
  EXPECT_EQ(all.n_same, 2);
  // Two prompts have four resamples; the ends are those with one prompt twice.
  EXPECT_DOUBLE_EQ(all.speedup.low, 0.8);
  EXPECT_DOUBLE_EQ(all.speedup.high, 2);
}

TEST(MethodFigures, HaveTheBoundsBesideThem) {
  const std::vector<MethodFigures> figures = method_figures(made_comparison());
  EXPECT_FALSE(of(figures, "", 0).bounds.has_value());  // plain decoding drafts nothing
  const MethodBounds bounds = of(figures, "").bounds.value();
  // 0.6 seconds for 50 levels; plain decoding takes 3 seconds for 30 passes.
  EXPECT_TRUE(near(bounds.level_cost.value, 0.12, 1e-15));
  // 25 rounds gave 30 tokens. The oracle drafts one token in 5 of them (1.1 + 0.12), none in 20.
  EXPECT_TRUE(near(bounds.oracle.value, 30 / (5 * 1.1 + 20 + 5 * 0.12), 1e-13));
  EXPECT_TRUE(near(bounds.oracle_share.value, (5 * 1.1 + 20 + 5 * 0.12) / 30, 1e-13));
  // Three rows cost 1.2, interpolated between two and four.
  EXPECT_TRUE(near(bounds.free.value, 30 / (25 * 1.2), 1e-13));
  EXPECT_EQ(bounds.perfect_length, 7);
  EXPECT_TRUE(near(bounds.perfect.value, 8 / (2.1 + 7 * 0.12), 1e-13));

  MethodComparison without = made_comparison();
  without.passes.reset();
  EXPECT_FALSE(of(method_figures(without), "").bounds.has_value());
}

// Then the cost of a level is unknown, but that drafting nothing was best is known.
TEST(MethodFigures, BoundMethodsThatDraftedNothing) {
  MethodComparison comparison = made_comparison();
  for (ComparedRound& round : comparison.rounds) {
    round.samples[1] = round.samples[0];
  }
  const MethodBounds bounds = of(method_figures(comparison), "").bounds.value();
  EXPECT_TRUE(std::isnan(bounds.level_cost.value));
  EXPECT_TRUE(std::isnan(bounds.perfect.value));
  EXPECT_EQ(bounds.perfect_length, -1);
  EXPECT_DOUBLE_EQ(bounds.oracle.value, 1);
  EXPECT_DOUBLE_EQ(bounds.free.value, 1);
}

TEST(MethodFigures, TakeTheMedianOfRepeatsForSecondsAndTheirSumForCounts) {
  MethodComparison comparison = made_comparison();
  comparison.options.repeats = 3;
  const ComparedRound round = comparison.rounds[0];
  comparison.rounds.assign(3, round);
  const double seconds[] = {0.5, 0.6, 9};
  for (int repeat = 0; repeat < 3; ++repeat) {
    ComparedRound& one = comparison.rounds[static_cast<std::size_t>(repeat)];
    one.repeat = repeat;
    one.samples[1].decode_seconds = seconds[repeat];
  }
  const MethodFigures figures = of(method_figures(comparison), "");
  EXPECT_DOUBLE_EQ(figures.speedup.value, 1 / 0.6);
  EXPECT_DOUBLE_EQ(figures.draft_share.value, 0.3 / 10.1);
  EXPECT_EQ(figures.accepted_lengths[1], 15);
  EXPECT_EQ(figures.n_same, 1);
  comparison.rounds[2].samples[1].first_difference = 4;
  const MethodFigures other = of(method_figures(comparison), "");
  EXPECT_EQ(other.n_same, 0);
  EXPECT_TRUE(std::isnan(other.request_speedup.value));  // texts differ
  EXPECT_THAT(comparison_problems(comparison),
              ElementsAre("set 1: eagle:models/draft <&>@chain:length=2 differs from plain "
                          "decoding at token 4, temperature 0"));
}

// If text lengths differ, seconds are compared for the same number of tokens.
TEST(MethodFigures, CompareSecondsATokenWhereTextsDiffer) {
  MethodComparison comparison = made_comparison();
  comparison.rounds.resize(1);
  comparison.rounds[0].samples[1].emitted = 40;
  comparison.rounds[0].samples[1].first_difference = 3;
  EXPECT_DOUBLE_EQ(of(method_figures(comparison), "").speedup.value, 8);
}

TEST(MethodFigures, LeaveOutWhatWasNotMeasured) {
  MethodComparison comparison = made_comparison();
  comparison.rounds[1].samples.clear();
  comparison.rounds[1].problem = "too long";
  EXPECT_EQ(of(method_figures(comparison), "").n_prompts, 1);
  EXPECT_THAT(comparison_problems(comparison), ElementsAre("set 2: too long"));
  EXPECT_TRUE(comparison.is_complete());
  comparison.rounds[0].samples[1].emitted = 0;
  EXPECT_THAT(method_figures(comparison), IsEmpty());
  comparison.rounds.clear();
  EXPECT_THAT(method_figures(comparison), IsEmpty());
  EXPECT_FALSE(comparison.is_complete());
}

TEST(MethodFigures, NameNoAlphasOfTrees) {
  MethodComparison comparison = made_comparison();
  comparison.rounds[0].samples[1].outcomes[0].nodes = 3;
  EXPECT_FALSE(of(method_figures(comparison), "").has_alphas);
  EXPECT_TRUE(of(method_figures(comparison), "hard, \"very\"").has_alphas);
}

PassCosts costs_of(const std::vector<std::pair<int, double>>& passes) {
  PassCosts costs;
  for (const auto& [rows, seconds] : passes) {
    costs.passes.push_back({.rows = rows, .seconds = {.median = seconds}, .ratio = 0});
  }
  return costs;
}

TEST(RelativeCosts, AreStraightLinesBetweenMeasuredWidths) {
  const PassTimes costs = relative_costs(costs_of({{1, 2}, {3, 4}, {5, 5}}));
  EXPECT_DOUBLE_EQ(costs.seconds(1), 1);
  EXPECT_DOUBLE_EQ(costs.seconds(2), 1.5);
  EXPECT_DOUBLE_EQ(costs.seconds(3), 2);
  EXPECT_DOUBLE_EQ(costs.seconds(4), 2.25);
  EXPECT_DOUBLE_EQ(costs.seconds(9), 3.5);
  // If a wider pass was measured as cheaper than a narrower one, it counts as equally expensive.
  EXPECT_DOUBLE_EQ(relative_costs(costs_of({{1, 1}, {2, 3}, {3, 2}})).seconds(3), 3);
  EXPECT_DOUBLE_EQ(relative_costs(costs_of({{1, 1}, {2, 3}, {3, 2}})).seconds(10), 3);
  EXPECT_DOUBLE_EQ(relative_costs(costs_of({{1, 1}})).seconds(10), 1);
}

TEST(PerfectDraft, IsNoneWhereNoDraftPays) {
  const PassTimes costs = relative_costs(costs_of({{1, 1}, {2, 2}, {4, 4}}));
  EXPECT_EQ(perfect_draft(costs, 0.1).length, 0);
  EXPECT_EQ(perfect_draft(costs, 0.1).speedup, 1);
}

}  // namespace
}  // namespace outrider
