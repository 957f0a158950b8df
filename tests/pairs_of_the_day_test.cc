// SPDX-License-Identifier: Apache-2.0
#include "tests/support/pairs_of_the_day.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace outrider::test {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

// Normal runs, or nightly ones; afterwards what it was.
class AtNight {
 public:
  explicit AtNight(bool is_night) {
    if (const char* before = std::getenv(kName)) before_ = before;
    was_set_ = nightly();
    is_night ? ::setenv(kName, "1", 1) : ::unsetenv(kName);
  }
  ~AtNight() { was_set_ ? ::setenv(kName, before_.c_str(), 1) : ::unsetenv(kName); }
  AtNight(const AtNight&) = delete;
  AtNight& operator=(const AtNight&) = delete;

 private:
  static constexpr const char* kName = "OUTRIDER_NIGHTLY";
  bool was_set_ = false;
  std::string before_;
};

using Triple = std::tuple<int, char, bool>;
const std::vector<int> kNumbers = {1, 2, 3, 4, 5};
const std::vector<char> kLetters = {'a', 'b', 'c'};
const std::vector<bool> kSwitches = {false, true};

TEST(PairsOfTheDay, AnyTwoValuesMeet) {
  const AtNight day(false);
  std::set<std::pair<int, char>> first;
  std::set<std::pair<int, bool>> second;
  std::set<std::pair<char, bool>> third;
  const auto cases = product_of_the_day(kNumbers, kLetters, kSwitches);
  for (const auto& [number, letter, is_on] : cases) {
    first.insert({number, letter});
    second.insert({number, is_on});
    third.insert({letter, is_on});
  }
  EXPECT_THAT(first, SizeIs(15));
  EXPECT_THAT(second, SizeIs(10));
  EXPECT_THAT(third, SizeIs(6));
  EXPECT_THAT(cases, SizeIs(15));  // the longest two lists' pairs, and no more
}

TEST(PairsOfTheDay, NightlyRunsHaveTheWholeProductInOrder) {
  const AtNight night(true);
  const auto cases = product_of_the_day(kNumbers, kLetters, kSwitches);
  ASSERT_THAT(cases, SizeIs(30));
  EXPECT_EQ(cases[0], Triple(1, 'a', false));
  EXPECT_EQ(cases[1], Triple(1, 'a', true));
  EXPECT_EQ(cases[2], Triple(1, 'b', false));
  EXPECT_EQ(cases[29], Triple(5, 'c', true));
  const std::vector<int> all = {7, 7, 7};
  EXPECT_EQ(pairs_of_the_day(all, [](int) { return CaseValues{"same", "same"}; }), all);
}

// Of equal cases the first runs, and those that run keep their order.
TEST(PairsOfTheDay, EarlierCasesArePreferred) {
  const std::vector<CaseValues> cases = {
      {"a", "x", "1"}, {"a", "x", "2"}, {"b", "x", "1"}, {"b", "x", "2"}, {"a", "x", "1"}};
  EXPECT_THAT(places_of_all_pairs(cases), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(places_of_all_pairs({{"a", "x"}, {"a", "x"}, {"b", "y"}}), ElementsAre(0, 2));
}

// Two values of lists that never meet are not asked for.
TEST(PairsOfTheDay, OnlyPairsThatThereAreCount) {
  EXPECT_THAT(places_of_all_pairs({{"a", "x"}, {"b", "y"}}), ElementsAre(0, 1));
  EXPECT_THAT(places_of_all_pairs({}), ElementsAre());
}

}  // namespace
}  // namespace outrider::test
