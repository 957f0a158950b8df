#include "engine/drafting_profile.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "outrider/error.h"
#include "tests/support/chain_tree.h"

namespace outrider {
namespace {

DraftingProfile example() {
  DraftingProfile profile{.passes = PassTimes({{1, 0.03}, {2, 0.0351}, {16, 0.12}}),
                          .drafters = {}};
  KnownOfDrafter known;
  const DraftTree tree = testing::chain_tree(3);
  known.drawn.past.add(tree, 3, 2);
  known.drawn.past.forget();
  known.drawn.past.add(tree, 3, 1);
  known.greedy.trust.add(0.7, true);
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
  EXPECT_EQ(read.passes.seconds(9), example().passes.seconds(9));
}

// Any byte of it changed, and any end of it missing: it is read, or refused with its name.
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
      {R"({"format":"outrider-drafting-profile","version":2,"passes":[],"drafters":[]})",
       R"({"format":"outrider-drafting-profile","version":1,"passes":[[1,-2]],"drafters":[]})",
       R"({"format":"outrider-drafting-profile","version":1,"passes":[[2,1],[1,1]],"drafters":[]})",
       R"({"format":"outrider-drafting-profile","version":1,"passes":[[1,1e999]],"drafters":[]})",
       R"({"format":"outrider-drafting-profile","version":1,"passes":[]})", "[]", "null", ""}) {
    EXPECT_THROW(read_drafting_profile(bad, "file"), Error) << bad;
  }
}

}  // namespace
}  // namespace outrider
