// SPDX-License-Identifier: Apache-2.0
// Recommendations depend on intervals alone: hand-made figures, some of whose intervals include 1.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "outrider/tune_drafters.h"

namespace outrider {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

TunedMethod planned(const std::string& drafter, const Estimate& over_plain, int n_prompts = 8) {
  TunedMethod method;
  method.drafter = drafter;
  method.n_prompts = n_prompts;
  method.over_plain = over_plain;
  method.over_auto = {kUnknown, kUnknown, kUnknown};
  return method;
}

TunedMethod fixed(const std::string& drafter, const std::string& tree, const Estimate& over_plain,
                  const Estimate& over_auto, int n_prompts = 8) {
  TunedMethod method = planned(drafter, over_plain, n_prompts);
  method.tree = tree;
  method.over_auto = over_auto;
  return method;
}

void expect(const std::vector<TunedMethod>& methods, Finding finding, std::size_t method) {
  const Advice advice = recommend(methods, 0);
  EXPECT_EQ(advice.finding, finding);
  EXPECT_EQ(advice.method, method);
}

TEST(RecommendDrafter, TakesTheFastestThatIsCertainToPay) {
  expect({planned("a", {1.2, 1.1, 1.3}), planned("b", {1.4, 1.05, 1.6})}, Finding::pays, 1);
  // The largest value may be no certain gain.
  expect({planned("a", {1.2, 1.1, 1.3}), planned("b", {1.4, 0.99, 1.9})}, Finding::pays, 0);
  // An end at 1 is not above it.
  expect({planned("a", {1.2, 1, 1.3})}, Finding::not_certain, 0);
}

TEST(RecommendDrafter, AFixedShapeHasToBeFasterThanWhatPaysByItself) {
  const TunedMethod own = planned("a", {1.5, 1.4, 1.6});
  const auto shape = [](const Estimate& over_plain, const Estimate& over_auto) {
    return fixed("a", "chain:length=4", over_plain, over_auto);
  };
  expect({own, shape({1.7, 1.6, 1.8}, {1.13, 1.01, 1.2})}, Finding::pays, 1);
  // Certainly faster than plain decoding, but perhaps no faster than without a shape.
  expect({own, shape({1.7, 1.6, 1.8}, {1.13, 0.99, 1.2})}, Finding::pays, 0);
  expect({own, shape({1.7, 1.6, 1.8}, {1.13, 1, 1.2})}, Finding::pays, 0);
  expect({own, shape({1.7, 1.6, 1.8}, {1.13, kUnknown, kUnknown})}, Finding::pays, 0);
  // Faster than a drafter that slows decoding, but perhaps no faster than none.
  expect({planned("a", {0.8, 0.7, 0.9}), shape({1.1, 0.9, 1.3}, {1.4, 1.3, 1.5})},
         Finding::not_certain, 1);
  expect({planned("a", {0.8, 0.7, 0.9}), shape({1.1, 1.05, 1.3}, {1.4, 1.3, 1.5})}, Finding::pays,
         1);
  // The best of several shapes; both are certain.
  expect({own, shape({1.7, 1.6, 1.8}, {1.13, 1.01, 1.2}), shape({1.8, 1.6, 2}, {1.2, 1.02, 1.3})},
         Finding::pays, 2);
  // A shape of one drafter, beaten by another drafter.
  expect({own, planned("b", {1.9, 1.8, 2}), shape({1.7, 1.6, 1.8}, {1.13, 1.01, 1.2})},
         Finding::pays, 1);
}

TEST(RecommendDrafter, SaysThatNonePaysWhereThatIsCertain) {
  expect({planned("a", {0.8, 0.7, 0.9}), planned("b", {0.9, 0.8, 1})}, Finding::costs, 1);
  expect({planned("a", {0.8, 0.7, 0.9}), planned("b", {0.9, 0.8, 1.01})}, Finding::not_certain, 1);
}

// 2^-5 is more than the 2.5 % below an interval, 2^-6 is less.
TEST(RecommendDrafter, IsCertainOfNothingBeforeSixPrompts) {
  EXPECT_GT(std::exp2(1 - kFewestPrompts), 0.025);
  EXPECT_LE(std::exp2(-kFewestPrompts), 0.025);
  expect({planned("a", {1.5, 1.4, 1.6}, kFewestPrompts - 1)}, Finding::not_certain, 0);
  expect({planned("a", {1.5, 1.4, 1.6}, kFewestPrompts)}, Finding::pays, 0);
  expect({planned("a", {0.5, 0.4, 0.6}, kFewestPrompts - 1)}, Finding::not_certain, 0);
  expect({planned("a", {1.5, kUnknown, kUnknown})}, Finding::not_certain, 0);
  EXPECT_EQ(recommend(std::vector{planned("a", {1.5, 1.4, 1.6}, 5)}, 0).prompts_needed, 6);
  EXPECT_EQ(recommend(std::vector{planned("a", {1.5, kUnknown, kUnknown}, 1)}, 0).prompts_needed,
            6);
}

TEST(RecommendDrafter, CountsThePromptsThatWouldTell) {
  const auto needed = [](const TunedMethod& method) {
    return recommend(std::vector{method}, 0).prompts_needed;
  };
  // The interval extends 0.5 below 1.25: half of that after four times the prompts, and one more.
  EXPECT_EQ(needed(planned("a", {1.25, 0.75, 1.5}, 8)), 33);
  // Below 1, the upper half counts.
  EXPECT_EQ(needed(planned("a", {0.75, 0.7, 1.25}, 8)), 33);
  EXPECT_EQ(needed(planned("a", {1, 0.9, 1.1}, 8)), 0);
  EXPECT_EQ(needed(planned("a", {1.5, 1.4, 1.6}, 8)), 0);  // certain
}

TEST(RecommendDrafter, LooksAtItsTemperatureAlone) {
  TunedMethod warm = planned("b", {2, 1.9, 2.1});
  warm.temperature = 1;
  const std::vector<TunedMethod> methods = {planned("a", {1.2, 1.1, 1.3}), warm};
  EXPECT_EQ(recommend(methods, 0).method, 0U);
  EXPECT_EQ(recommend(methods, 1).method, 1U);
  EXPECT_EQ(recommend(methods, 0.5).method, methods.size());
  EXPECT_EQ(recommend(methods, 0.5).finding, Finding::not_certain);
}

TEST(RecommendDrafter, NeverTakesWhatSaysAnotherText) {
  TunedMethod wrong = planned("b", {2, 1.9, 2.1});
  wrong.differs = true;
  expect({planned("a", {1.2, 1.1, 1.3}), wrong}, Finding::pays, 0);
}

TEST(RecommendDrafter, FlagsAreAShellsWords) {
  EXPECT_EQ(flags_of(planned("suffix", {})), "--drafter suffix");
  EXPECT_EQ(flags_of(fixed("model:/a/b.gguf", "chain:length=4", {}, {})),
            "--drafter model:/a/b.gguf --tree chain:length=4");
  EXPECT_EQ(flags_of(planned("model:my model", {})), "--drafter 'model:my model'");
  EXPECT_EQ(flags_of(planned("model:it's", {})), "--drafter 'model:it'\\''s'");
}

}  // namespace
}  // namespace outrider
