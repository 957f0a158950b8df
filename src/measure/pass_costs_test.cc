// SPDX-License-Identifier: Apache-2.0
// Figures of passes: the arithmetic with made-up times, and the measurement on a tiny model, whose
// times mean nothing.
#include "measure/pass_costs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "measure/arbitrary_tokens.h"
#include "measure/spread.h"
#include "outrider/error.h"
#include "tests/support/models/tiny_pair.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Lt;

std::string usage_error(const std::function<void()>& action) {
  try {
    action();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no usage error";
}

TEST(SpreadOf, IsMedianAndExtremes) {
  const Spread odd = spread_of({3, 1, 2});
  EXPECT_EQ(odd.median, 2);
  EXPECT_EQ(odd.min, 1);
  EXPECT_EQ(odd.max, 3);
  EXPECT_EQ(spread_of({4, 1, 2, 100}).median, 3);
  EXPECT_EQ(spread_of({7}).median, 7);
}

TEST(ArbitraryTokens, AreOfTheVocabularyAndDiffer) {
  const std::vector<TokenId> tokens = arbitrary_tokens(512, 32000);
  EXPECT_THAT(tokens, Each(AllOf(Ge(0), Lt(32000))));
  EXPECT_GT(std::set<TokenId>(tokens.begin(), tokens.end()).size(), 500U);
  EXPECT_THAT(arbitrary_tokens(3, 1), ElementsAre(0, 0, 0));
  const int most = std::numeric_limits<int>::max();
  EXPECT_THAT(arbitrary_tokens(100, most), Each(AllOf(Ge(0), Lt(most))));
}

TEST(PassCosts, AreRatiosOfMedians) {
  const PassCosts costs = summarise({.rows = {1, 16},
                                     .seconds = {{0.5, 0.25, 100}, {1, 0.75, 0.5}},
                                     .experts = {2, 5.5},
                                     .bandwidth = {8e9, 4e9, 16e9},
                                     .one_stream = {3e9, 2e9, 1e9},
                                     .prefill_tokens = 64,
                                     .prefill_seconds = {4, 2, 3}},
                                    3'000'000'000);
  ASSERT_EQ(costs.passes.size(), 2U);
  EXPECT_EQ(costs.passes[0].rows, 1);
  EXPECT_EQ(costs.passes[0].ratio, 1);
  EXPECT_EQ(costs.passes[0].seconds.max, 100);
  EXPECT_EQ(costs.passes[1].rows, 16);
  EXPECT_EQ(costs.passes[1].ratio, 1.5);
  EXPECT_EQ(costs.passes[0].experts, 2);
  EXPECT_EQ(costs.passes[1].experts, 5.5);
  EXPECT_EQ(costs.bandwidth_bytes_per_second.median, 8e9);
  EXPECT_EQ(costs.one_stream_bytes_per_second.median, 2e9);
  EXPECT_EQ(costs.bandwidth_share, 0.75);
  ASSERT_TRUE(costs.prefill);
  EXPECT_EQ(costs.prefill->seconds.median, 3);
  EXPECT_DOUBLE_EQ(costs.prefill->tokens_per_second(), 64.0 / 3);
}

TEST(PassCosts, RefuseWhatCannotBeMeant) {
  struct Case {
    PassOptions options;
    const char* problem;
  };
  for (const Case& bad :
       {Case{{.rows = {}}, "rows: expected at least one"},
        Case{{.rows = {0}}, "rows: expected numbers from 1 to 256, got 0"},
        Case{{.rows = {1, 257}}, "rows: expected numbers from 1 to 256, got 257"},
        Case{{.rows = {1, 4, 4}}, "rows: expected ascending numbers, more than 4 next, got 4"},
        Case{{.rows = {4, 2}}, "got 2"}, Case{{.context = -1}, "context"},
        Case{{.prefill = -1}, "prefill"}, Case{{.rounds = 0}, "rounds"},
        Case{{.read_bytes = 0}, "read_bytes"}}) {
    EXPECT_THAT(usage_error([&] { check_passes(bad.options); }), HasSubstr(bad.problem));
  }
  EXPECT_NO_THROW(check_passes({.rows = {1, 2, 256}}));
}

class MeasurePasses : public ::testing::Test {
 protected:
  void SetUp() override {
    test::write_tiny_pair(folder_.path());
    model_ = Model::load(folder_.path() / "target", {.threads = 2});
  }
  // The smallest possible measurement.
  static PassOptions quick() {
    return {.rows = {2, 5}, .rounds = 1, .read_bytes = std::int64_t{1} << 20};
  }

  test::TemporaryDirectory folder_;
  std::shared_ptr<const Model> model_;
};

TEST_F(MeasurePasses, GivesAFigureForEveryWidthAndForOneRow) {
  for (const PassNodes nodes : {PassNodes::chain, PassNodes::star}) {
    PassOptions options = quick();
    options.nodes = nodes;
    options.context = 300;  // more than one step of prefill
    options.prefill = 257;
    options.rounds = 2;
    std::vector<double> shares;
    options.progress = [&](std::string_view, double share) { shares.push_back(share); };
    const PassCosts costs = measure_passes(*model_, options);
    std::vector<int> rows;
    for (const PassCost& pass : costs.passes) {
      rows.push_back(pass.rows);
      EXPECT_GT(pass.seconds.min, 0);
      EXPECT_GE(pass.seconds.median, pass.seconds.min);
      EXPECT_GE(pass.seconds.max, pass.seconds.median);
      EXPECT_EQ(pass.ratio, pass.seconds.median / costs.passes[0].seconds.median);
    }
    EXPECT_THAT(rows, ElementsAre(1, 2, 5));
    ASSERT_TRUE(costs.prefill);
    EXPECT_EQ(costs.prefill->tokens, 257);
    EXPECT_GT(costs.prefill->seconds.min, 0);
    EXPECT_GT(costs.bandwidth_share, 0);
    EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
    EXPECT_THAT(shares, Each(AllOf(Ge(0), Lt(1))));
  }
}

TEST_F(MeasurePasses, LeavesTheModelAsItWas) {
  const GenerateOptions options{.max_tokens = 20, .ignore_eos = true, .keep_logits = true};
  const GenerateResult before = Generator(model_).generate("A test", options);
  measure_passes(*model_, quick());
  const GenerateResult after = Generator(model_).generate("A test", options);
  EXPECT_EQ(before.ids, after.ids);
  EXPECT_EQ(before.logits, after.logits);
}

TEST_F(MeasurePasses, NeedsRoomInTheContext) {
  const int room = model_->summary().context_length;
  PassOptions options = quick();
  options.context = room - 4;
  EXPECT_THAT(usage_error([&] { measure_passes(*model_, options); }), HasSubstr("context"));
  options.context = room - 5;
  EXPECT_NO_THROW(measure_passes(*model_, options));
  options.context = 0;
  options.prefill = room + 1;
  EXPECT_THAT(usage_error([&] { measure_passes(*model_, options); }), HasSubstr("prefill"));
}

TEST_F(MeasurePasses, EndsWhereProgressThrows) {
  PassOptions options = quick();
  int n_calls = 0;
  options.progress = [&](std::string_view, double) {
    if (++n_calls == 5) throw std::runtime_error("enough");
  };
  EXPECT_THROW(measure_passes(*model_, options), std::runtime_error);
  EXPECT_EQ(n_calls, 5);
}

}  // namespace
}  // namespace outrider
