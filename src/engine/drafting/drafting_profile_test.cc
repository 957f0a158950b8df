// SPDX-License-Identifier: Apache-2.0
#include "engine/drafting/drafting_profile.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>

#include "outrider/error.h"
#include "tests/support/proofs/chain_tree.h"

namespace outrider {
namespace {

DraftingProfile example() {
  DraftingProfile profile{.passes = PassTimes({{1, 0.03}, {2, 0.0351}, {16, 0.12}}),
                          .drafters = {}};
  KnownOfDrafter known;
  const DraftTree tree = test::chain_tree(3);
  known.drawn.past.add(tree, 3, 2);
  known.drawn.past.forget();
  known.drawn.past.add(tree, 3, 1);
  known.greedy.trust.add(0.7, true);
  known.greedy.recent_past.add(tree, 3, 3);
  known.levels = PassTimes({{1, 0.01}});
  known.seconds_a_token = 0.004;
  profile.drafters.emplace_back("model:a,b\\\"c", known);
  return profile;
}

TEST(DraftingProfile, ComesBackAsItWas) {
  const std::string text = to_text(example());
  EXPECT_EQ(to_text(read_drafting_profile(text, "file")), text);
  const DraftingProfile read = read_drafting_profile(text, "file");
  EXPECT_EQ(read.drafters.front().first, "model:a,b\\\"c");
  EXPECT_EQ(read.drafters.front().second.greedy.trust.stands(0.7),
            example().drafters.front().second.greedy.trust.stands(0.7));
  EXPECT_EQ(read.drafters.front().second.greedy.recent_past.counts()[2].accepted, 1);
  EXPECT_EQ(read.passes.seconds(9), example().passes.seconds(9));
}

// Profiles from before recent_only drafts.
TEST(DraftingProfile, ReadsOneWithoutRecentDrafts) {
  std::string text = to_text(example());
  for (std::size_t at = text.find("\"recent\""); at != std::string::npos;
       at = text.find("\"recent\"")) {
    text.erase(at, text.find("\"trust\"", at) - at);
  }
  const DraftingProfile read = read_drafting_profile(text, "file");
  EXPECT_EQ(read.drafters.front().second.greedy.recent_past.n_rounds(), 0);
  EXPECT_GT(read.drafters.front().second.drawn.past.n_rounds(), 0);
}

// With any byte changed or any end cut off, a profile is read, or refused with its name.
TEST(DraftingProfile, RefusesWhatIsNone) {
  const std::string text = to_text(example());
  std::mt19937 random(1);
  int n_refused = 0;
  const auto look = [&](const std::string& damaged) {
    try {
      read_drafting_profile(damaged, "the-file");
    } catch (const Error& error) {
      ++n_refused;
      EXPECT_NE(std::string(error.what()).find("the-file"), std::string::npos);
    }
  };
  for (std::size_t at = 0; at < text.size(); at += 3) {
    look(text.substr(0, at));
    std::string damaged = text;
    damaged[at] = static_cast<char>(random() % 256);
    look(damaged);
  }
  EXPECT_GT(n_refused, static_cast<int>(text.size() / 3));
  for (
      const char* const bad :
      {R"({"format":"outrider-drafting-profile","version":1,"passes":[],"drafters":[]})",
       R"({"format":"outrider-drafting-profile","version":3,"passes":[],"drafters":[]})",
       R"({"format":"outrider-drafting-profile","version":2,"passes":[[1,-2]],"drafters":[]})",
       R"({"format":"outrider-drafting-profile","version":2,"passes":[[2,1],[1,1]],"drafters":[]})",
       R"({"format":"outrider-drafting-profile","version":2,"passes":[[1,1e999]],"drafters":[]})",
       R"({"format":"outrider-drafting-profile","version":2,"passes":[]})", "[]", "null", ""}) {
    EXPECT_THROW(read_drafting_profile(bad, "file"), Error) << bad;
  }
  EXPECT_NO_THROW(read_drafting_profile(
      R"({"format":"outrider-drafting-profile","version":2,"passes":[],"drafters":[]})", "file"));
}

// The first version held one drafter and did not name the model.
TEST(DraftingProfile, RefusesTheFirstVersionByItsNumber) {
  std::string text = to_text(example());
  const std::string version = "\"version\":2";
  text.replace(text.find(version), version.size(), "\"version\":1");
  try {
    read_drafting_profile(text, "old.json");
    FAIL() << "it was read";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()),
              "[read drafting profile] old.json: expected version 2, got 1");
  }
}

// A drafter `name` with n_rounds of one accepted token each and levels of `seconds`.
std::pair<std::string, KnownOfDrafter> drafter(const std::string& name, int n_rounds,
                                               double seconds) {
  KnownOfDrafter known;
  const DraftTree tree = test::chain_tree(1);
  for (int round = 0; round < n_rounds; ++round) known.greedy.past.add(tree, 1, 1);
  known.levels = PassTimes({{1, seconds}});
  known.seconds_a_token = seconds / 2;
  return {name, known};
}

TEST(DraftingProfile, KeepsWhatIsKnownOfOtherDrafters) {
  DraftingProfile before{.passes = PassTimes({{1, 0.02}}), .drafters = {}};
  before.drafters = {drafter("a", 1, 0.01), drafter("b", 2, 0.01)};
  // The machine is now half as fast as then.
  DraftingProfile run{.passes = PassTimes({{1, 0.04}, {2, 0.05}}), .drafters = {}};
  run.drafters = {drafter("b", 5, 0.03)};
  const DraftingProfile merged = merge_profiles(run, before);
  EXPECT_EQ(merged.passes.seconds(2), 0.05);
  ASSERT_EQ(merged.drafters.size(), 2U);
  EXPECT_EQ(merged.drafters[0].first, "b");
  EXPECT_EQ(merged.drafters[0].second.greedy.past.n_rounds(), 5);
  EXPECT_EQ(merged.drafters[0].second.levels.seconds(1), 0.03);
  EXPECT_EQ(merged.drafters[1].first, "a");
  EXPECT_EQ(merged.drafters[1].second.greedy.past.n_rounds(), 1);
  EXPECT_EQ(merged.drafters[1].second.levels.seconds(1), 0.02);
  EXPECT_EQ(merged.drafters[1].second.seconds_a_token, 0.01);

  // A run that measured nothing removes nothing.
  const DraftingProfile same = merge_profiles({}, before);
  EXPECT_EQ(to_text(same), to_text(before));
}

// Costs that drift while a batch learns are written at scale 1.
TEST(DraftingProfile, PutsTimesAtTheScaleThatIsWritten) {
  DraftingProfile before{.passes = PassTimes({{1, 0.02}}), .drafters = {drafter("a", 1, 0.01)}};
  DraftingProfile run{.passes = PassTimes({{1, 0.02}}), .drafters = {}};
  for (int pass = 0; pass < 3; ++pass) run.passes.add(1, 0.06);
  ASSERT_GT(run.passes.scale(), 1.2);
  const DraftingProfile merged = merge_profiles(run, before);
  const double base = run.passes.seconds(1) / run.passes.scale();
  EXPECT_DOUBLE_EQ(merged.drafters[0].second.levels.seconds(1), 0.01 * (base / 0.02));
  EXPECT_LT(base, 1.2 * 0.02);
}

TEST(DraftingProfile, HoldsTheDraftersUsedLast) {
  DraftingProfile profile{.passes = PassTimes({{1, 0.02}}), .drafters = {}};
  for (int i = 0; i < 40; ++i) {
    DraftingProfile run{.passes = profile.passes, .drafters = {drafter(std::to_string(i), 1, 1)}};
    profile = merge_profiles(run, read_drafting_profile(to_text(profile), "file"));
  }
  ASSERT_EQ(profile.drafters.size(), kMaxProfiledDrafters);
  EXPECT_EQ(profile.drafters.front().first, "39");
  EXPECT_EQ(profile.drafters.back().first, "8");
  EXPECT_LT(to_text(profile).size(), 200'000U);

  profile.drafters.push_back(drafter("one more", 1, 1));
  EXPECT_THROW(read_drafting_profile(to_text(profile), "file"), Error);
}

TEST(DraftingProfile, RefusesWhatIsMadeToHurt) {
  const auto refused = [](const std::string& text, const char* words) {
    try {
      read_drafting_profile(text, "file");
      ADD_FAILURE() << "it was read: " << words;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  };
  const std::string head = R"({"format":"outrider-drafting-profile","version":2,"passes":)";
  refused(head + std::string(1'000'000, '['), "in at most 16 others");
  refused(head + std::string(1'000'000, '[') + std::string(1'000'000, ']') + "}",
          "in at most 16 others");
  refused(std::string(5U << 20, ' '), "bytes");
  DraftingProfile twice = example();
  twice.drafters.push_back(twice.drafters.front());
  refused(to_text(twice), "each drafter once");
}

}  // namespace
}  // namespace outrider
