// SPDX-License-Identifier: Apache-2.0
// Profiles as files, and the trees planned from them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "engine/drafting/make_tree_shape.h"
#include "outrider/error.h"
#include "outrider/tune.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TreeProfile sample_profile() {
  return {.target = "a \"target\"",
          .drafter = "model:small",
          .temperature = 0.5,
          .siblings = "with",
          .accept_by_rank = {0.5, 0.25, 0.0625},
          .n_nodes = 1234,
          .draft_seconds = 0.125,
          .level_seconds = 0.25,
          .passes = {
              {.rows = 1, .seconds = 1}, {.rows = 3, .seconds = 2}, {.rows = 7, .seconds = 2.5}}};
}

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(TreeProfile, ComesBackAsItWasWritten) {
  const test::TemporaryDirectory directory;
  const auto file = directory.path() / "profile.json";
  const TreeProfile written = sample_profile();
  write_tree_profile(written, file);
  const TreeProfile read = read_tree_profile(file);
  EXPECT_EQ(read.target, written.target);
  EXPECT_EQ(read.drafter, written.drafter);
  EXPECT_EQ(read.temperature, written.temperature);
  EXPECT_EQ(read.siblings, written.siblings);
  EXPECT_EQ(read.accept_by_rank, written.accept_by_rank);
  EXPECT_EQ(read.n_nodes, written.n_nodes);
  EXPECT_EQ(read.draft_seconds, written.draft_seconds);
  EXPECT_EQ(read.level_seconds, written.level_seconds);
  ASSERT_EQ(read.passes.size(), written.passes.size());
  for (std::size_t i = 0; i < read.passes.size(); ++i) {
    EXPECT_EQ(read.passes[i].rows, written.passes[i].rows);
    EXPECT_EQ(read.passes[i].seconds, written.passes[i].seconds);
  }
}

TEST(TreeProfile, SaysWhatIsWrongWithAFile) {
  const test::TemporaryDirectory directory;
  const auto file = directory.path() / "profile.json";
  write_tree_profile(sample_profile(), file);
  std::ifstream stream(file);
  const std::string good{std::istreambuf_iterator<char>(stream), {}};
  struct Case {
    std::string from;
    std::string to;
    const char* named;
  };
  for (const Case& one : std::vector<Case>{
           {"outrider-tree-profile", "a-profile", "'outrider-tree-profile'"},
           {"\"version\": 1", "\"version\": 2", "version 1"},
           {"\"with\"", "\"between\"", "siblings without, with or top"},
           {"0.25,", "0.75,", "a sum of at most 1"},
           {"0.5,\n  \"siblings", "-0.5,\n  \"siblings", "a value of 'temperature'"},
           {"\"rows\": 1,", "\"rows\": 2,", "a pass over 1 row first"},
           {"\"rows\": 7,", "\"rows\": 3,", "passes of more and more rows"},
           {"\"rows\": 7,", "\"rows\": 257,", "N to 256"},
           {"\"rows\": 7,", "\"columns\": 7,", "rows and seconds"},
           {"\"n_nodes\": 1234,", "", "the key 'n_nodes'"},
           {"\"n_nodes\"", "\"target\"", "'target' twice"},
           {"\"n_nodes\"", "\"nodes\"", "got nodes"},
           {"[\n    0.5,", "[[\n    0.5,", "an array"},
           {"{", "[", "an object"},
           {"}", "", "a syntax error"},
       }) {
    std::string bad = good;
    const std::size_t at = bad.find(one.from);
    ASSERT_NE(at, std::string::npos) << one.from;
    bad.replace(at, one.from.size(), one.to);
    std::ofstream(file) << bad;
    const std::string message = error_of([&file] { read_tree_profile(file); });
    EXPECT_THAT(message, HasSubstr(one.named)) << one.from << " -> " << one.to;
    EXPECT_THAT(message, HasSubstr("profile.json")) << one.from << " -> " << one.to;
  }
  for (std::size_t size = 0; size + 2 < good.size(); size += 7) {
    std::ofstream(file) << good.substr(0, size);
    EXPECT_NE(error_of([&file] { read_tree_profile(file); }), "no error") << size;
  }
}

TEST(PlanTree, WeighsTokensAgainstSeconds) {
  // A child is accepted with 0.5; passes of 1, 2, 3 rows take 1, 1.5, 2. One node gives 1.5 tokens
  // in 1.5 + 0.125 + 0.25 seconds, no better than plain decoding's 1 per second; with a free draft
  // it is better.
  TreeProfile profile = sample_profile();
  profile.accept_by_rank = {0.5};
  EXPECT_EQ(plan_tree(profile).n_nodes, 0);
  EXPECT_EQ(plan_tree(profile).speedup(), 1);
  EXPECT_THAT(plan_tree(profile).level_sizes, ElementsAre());
  profile.draft_seconds = profile.level_seconds = 0;
  profile.passes = {{.rows = 1, .seconds = 1}, {.rows = 5, .seconds = 1}};
  const PlannedDraft chain = plan_tree(profile);
  EXPECT_THAT(chain.level_sizes, ElementsAre(1, 1, 1, 1));
  EXPECT_DOUBLE_EQ(chain.tau, 1 + 0.5 + 0.25 + 0.125 + 0.0625);
  EXPECT_DOUBLE_EQ(chain.speedup(), chain.tau);
  EXPECT_THAT(plan_tree(profile, 3).level_sizes, ElementsAre(1, 1, 1));
  EXPECT_THAT(plan_tree(profile, 0, 2).level_sizes, ElementsAre(1, 1));
  profile.accept_by_rank = {0.4, 0.4};
  const PlannedDraft tree = plan_tree(profile, 3);
  EXPECT_THAT(tree.level_sizes, ElementsAre(2, 1));
  EXPECT_DOUBLE_EQ(tree.tau, 1 + 0.4 + 0.4 + 0.16);
  EXPECT_THROW(plan_tree(profile, 5), UsageError);
  EXPECT_THROW(plan_tree(profile, -1), UsageError);
  EXPECT_THROW(plan_tree(profile, 1, -1), UsageError);
  EXPECT_THROW(plan_tree({}), UsageError);
  profile.passes = {{.rows = 2, .seconds = 1}};
  EXPECT_THROW(plan_tree(profile), UsageError);
}

TEST(PlanTree, PassesBetweenMeasuredOnesCostWhatLiesBetween) {
  // Over 3 rows: 1 + (2 - 1) / 4 * 2 = 1.5.
  TreeProfile profile = sample_profile();
  profile.accept_by_rank = {1};
  profile.draft_seconds = profile.level_seconds = 0;
  profile.passes = {{.rows = 1, .seconds = 1}, {.rows = 5, .seconds = 2}};
  EXPECT_DOUBLE_EQ(plan_tree(profile, 2).seconds_per_token, 1.5 / 3);
  EXPECT_DOUBLE_EQ(plan_tree(profile, 4).seconds_per_token, 2.0 / 5);
}

TEST(PlanTree, IsATreeOfTheSpecLanguage) {
  const test::TemporaryDirectory directory;
  const std::string file = (directory.path() / "profile.json").string();
  TreeProfile profile = sample_profile();
  profile.draft_seconds = profile.level_seconds = 0;
  profile.passes = {{.rows = 1, .seconds = 1}, {.rows = 8, .seconds = 1}};
  write_tree_profile(profile, file);
  const auto shape = make_tree_shape("sequoia:profile=" + file);
  EXPECT_EQ(shape->n_nodes(), 7);
  EXPECT_EQ(shape->siblings(), Siblings::with_replacement);
  EXPECT_EQ(make_tree_shape("sequoia:budget=4,profile=" + file)->n_nodes(), 4);
  EXPECT_EQ(make_tree_shape("sequoia:depth=1,profile=" + file)->depth(), 1);
  EXPECT_THROW(make_tree_shape("sequoia:budget=8,profile=" + file), UsageError);
  EXPECT_THROW(make_tree_shape("sequoia:budget=4"), UsageError);
  EXPECT_THROW(make_tree_shape("sequoia:7,profile=" + file), UsageError);
  EXPECT_THROW(make_tree_shape("sequoia:profile=" + file + ".no"), Error);
}

}  // namespace
}  // namespace outrider
