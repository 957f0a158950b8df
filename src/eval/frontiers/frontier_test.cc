// SPDX-License-Identifier: Apache-2.0
#include "eval/frontiers/frontier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "eval/frontiers/frontier_report.h"
#include "sampling/bootstrap.h"
#include "tests/support/temporary_directory.h"

namespace outrider::eval {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// The share of correct items.
class Share final : public Metric {
 public:
  std::string_view name() const override { return "share"; }
  std::vector<std::string_view> score_names() const override { return {"right"}; }
  std::size_t n_counts() const override { return 2; }
  std::vector<double> count(const Judged&) const override { return {0, 1}; }
  std::vector<double> scores(std::span<const double> sums) const override {
    return {sums[0] / sums[1]};
  }
  std::string signature(std::size_t) const override { return {}; }
};

FrontierPoint point(const std::string& family, double quality, double latency, double passes,
                    double temperature = 1) {
  FrontierPoint point;
  point.setting.rule = {.rule = family + ":x", .family = family, .parameter = {}};
  point.setting.length = 5;
  point.setting.sampling.temperature = temperature;
  point.quality.value = quality;
  point.plain_quality.value = 0.5;
  point.latency.value = latency;
  point.passes.value = passes;
  return point;
}

// A curve that is better than the target at half its latency, as good at 0.4 and worse below.
TEST(FrontierTable, OfASyntheticFrontier) {
  const std::vector<FrontierPoint> points = {
      point("a", 0.30, 0.2, 0.1), point("a", 0.50, 0.4, 0.2), point("a", 0.56, 0.5, 0.3),
      point("a", 0.60, 1.2, 0.4), point("a", 0.55, 1.0, 0.5), point("b", 0.45, 0.9, 0.9),
      point("b", 0.40, 0.8, 0.8), point("c", 0.70, 1.5, 1.4), point("d", kNaN, 0.1, 0.1),
      point("d", 0.50, kNaN, 1.0)};
  const std::vector<FrontierRow> rows = frontier_rows(points, Cost::latency, true);
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(rows[0].fastest_as_good->latency.value, 0.4);
  EXPECT_EQ(rows[0].best_as_fast->quality.value, 0.56);
  EXPECT_FALSE(rows[1].fastest_as_good.has_value());  // never as good
  EXPECT_EQ(rows[1].best_as_fast->quality.value, 0.45);
  EXPECT_EQ(rows[2].fastest_as_good->latency.value, 1.5);  // as good, and slower
  EXPECT_FALSE(rows[2].best_as_fast.has_value());
  EXPECT_FALSE(rows[3].fastest_as_good.has_value());  // unknown is neither
  EXPECT_FALSE(rows[3].best_as_fast.has_value());

  // Counted in passes, the slow point is within the target's cost.
  const std::vector<FrontierRow> by_passes = frontier_rows(points, Cost::passes, true);
  EXPECT_EQ(by_passes[0].best_as_fast->quality.value, 0.60);
  EXPECT_EQ(by_passes[3].fastest_as_good->passes.value, 1);
}

TEST(FrontierTable, TurnsRoundWhereLessIsBetter) {
  const std::vector<FrontierPoint> points = {point("a", 0.45, 0.9, 1), point("a", 0.50, 0.7, 1),
                                             point("a", 0.60, 0.5, 1)};
  const std::vector<FrontierRow> rows = frontier_rows(points, Cost::latency, false);
  EXPECT_EQ(rows[0].fastest_as_good->latency.value, 0.7);
  EXPECT_EQ(rows[0].best_as_fast->quality.value, 0.45);
}

TEST(FrontierTable, KeepsTransformsAndSlicesApart) {
  std::vector<FrontierPoint> points = {point("a", 0.6, 0.9, 1, 0), point("a", 0.7, 0.8, 1, 1)};
  points.push_back(points.back());
  points.back().slice = "left";
  EXPECT_EQ(frontier_rows(points, Cost::latency, true).size(), 3U);
}

// Four answers with quality and costs that can be counted by hand.
std::vector<FrontierItem> items() {
  std::vector<FrontierItem> items;
  const double seconds[] = {2, 8, 3, 100};
  for (int i = 0; i < 4; ++i) {
    FrontierItem item;
    item.answer.counts["share"] = {i < 3 ? 1.0 : 0.0, 1.0};
    item.plain.counts["share"] = {i < 2 ? 1.0 : 0.0, 1.0};
    item.answer.slice = i % 2 == 0 ? "even" : "odd";
    item.answer.effort.emitted = 20;
    item.answer.effort.target_passes = 5;
    item.answer.effort.drafter_passes = 25;
    item.answer.effort.drafted = 25;
    item.answer.effort.accepted = 15;
    item.answer.effort.rejected = 5;
    item.answer.effort.deferral = 4;
    item.answer.effort.decode_seconds = seconds[i];
    item.plain.effort.emitted = 10;
    item.plain.effort.target_passes = 10;
    item.plain.effort.decode_seconds = 2;
    items.push_back(item);
  }
  return items;
}

TEST(Frontier, MeasuresAPointAndItsSlices) {
  const FrontierSetting setting{
      .rule = {.rule = "chow:alpha=0.5", .family = "chow", .parameter = "alpha", .value = 0.5},
      .length = 5,
      .sampling = {.temperature = 1}};
  const auto points = measure_points(setting, items(), Share(),
                                     {.target_parameters = 100, .drafter_parameters = 20});
  ASSERT_EQ(points.size(), 3U);
  const FrontierPoint& all = points[0];
  EXPECT_EQ(all.n_items, 4);
  EXPECT_EQ(all.quality.value, 0.75);
  EXPECT_EQ(all.plain_quality.value, 0.5);
  EXPECT_EQ(all.latency.value, (0.75 + 2) / 2);  // of 0.5, 0.75, 2 and 25
  EXPECT_EQ(all.passes.value, 0.25);
  EXPECT_EQ(all.rejection.value, 0.25);
  EXPECT_EQ(all.deferral.value, 0.2);
  EXPECT_DOUBLE_EQ(all.compute.value, (5 + 25 + 0.2 * 25) / 20);
  EXPECT_LE(all.quality.low, 0.75);
  EXPECT_GE(all.quality.high, 0.75);
  EXPECT_LE(all.latency.low, all.latency.value);
  EXPECT_EQ(points[1].slice, "even");
  EXPECT_EQ(points[1].quality.value, 1);
  EXPECT_EQ(points[1].n_items, 2);
  EXPECT_EQ(points[2].quality.value, 0.5);

  FrontierSetting sequential = setting;
  sequential.sequential = true;
  EXPECT_TRUE(std::isnan(measure_points(sequential, items(), Share(), {100, 20})[0].compute.value));
}

TEST(Frontier, KnowsNoLatencyOfNothing) {
  std::vector<FrontierItem> silent = items();
  for (FrontierItem& item : silent) item.plain.effort.emitted = 0;
  EXPECT_TRUE(std::isnan(measure_points({}, silent, Share(), {1, 1})[0].latency.value));
}

TEST(Frontier, TakesTimesOfTimedItemsAlone) {
  std::vector<FrontierItem> some = items();
  some[1].timed = some[3].timed = false;
  const FrontierPoint point = measure_points({}, some, Share(), {1, 1})[0];
  EXPECT_EQ(point.latency.value, (0.5 + 0.75) / 2);
  EXPECT_EQ(point.n_items, 4);
  EXPECT_EQ(point.n_timed, 2);
  EXPECT_EQ(point.quality.value, 0.75);  // all other figures include all items
  EXPECT_EQ(point.plain_quality.value, 0.5);
  EXPECT_EQ(point.passes.value, 0.25);
  for (FrontierItem& item : some) item.timed = false;
  EXPECT_TRUE(std::isnan(measure_points({}, some, Share(), {1, 1})[0].latency.value));
}

TEST(FrontierReport, SaysTheSameInEveryForm) {
  const FrontierSetting setting{.rule = {.rule = "lossy:beta=auto,alpha=0.5",
                                         .family = "lossy:beta=auto",
                                         .parameter = "alpha",
                                         .value = 0.5},
                                .length = 5,
                                .sampling = {.temperature = 1}};
  const auto points = measure_points(setting, items(), Share(),
                                     {.target_parameters = 100, .drafter_parameters = 20});
  const FrontierRun run{.task = "t",
                        .metric = "share",
                        .score = "right",
                        .larger_is_better = true,
                        .target = "L",
                        .drafter = "S"};
  EXPECT_THAT(frontier_text(points, run),
              AllOf(HasSubstr("T=1: right of the target alone 0.500"), HasSubstr("T=1, even"),
                    HasSubstr("passes / 4.00"),
                    HasSubstr("(lossy:beta=auto,alpha=0.5, drafts of 5: 0.750)")));
  const auto json = nlohmann::json::parse(frontier_json(points, run).dump());
  EXPECT_EQ(json["points"].size(), 3U);
  EXPECT_EQ(json["points"][0]["alpha"], 0.5);
  EXPECT_EQ(json["tables"]["passes"][0]["fastest_as_good"]["passes"][0], 0.25);
  const test::TemporaryDirectory directory;
  const auto undrawn = write_frontier_report(points, run, directory.path(), "svg");
  EXPECT_LE(undrawn.size(), 1U);
  const bool is_named = !undrawn.empty() &&
                        undrawn.front().find("frontier-passes-T=1--even.svg") != std::string::npos;
  EXPECT_NE(std::filesystem::exists(directory.path() / "frontier-passes-T=1--even.svg"), is_named);
}

// Sequential cascades have no compute figure: a missing gnuplot would be the wrong reason.
TEST(FrontierReport, SaysWhyAPictureIsMissing) {
  FrontierSetting setting;
  setting.rule.family = "token:chow";
  setting.sequential = true;
  const auto points = measure_points(setting, items(), Share(), {100, 20});
  const test::TemporaryDirectory directory;
  const auto undrawn = write_frontier_report(points, FrontierRun(), directory.path(), "svg");
  ASSERT_FALSE(undrawn.empty());
  EXPECT_THAT(undrawn.front(),
              AllOf(HasSubstr("no point has a number"), HasSubstr("frontier-compute-T=0.svg"),
                    Not(HasSubstr("gnuplot")), Not(HasSubstr("frontier-passes"))));
}

TEST(FrontierReport, LeavesNoPictureOfAnEarlierOne) {
  const test::TemporaryDirectory directory;
  const auto touch = [&](const char* name) { std::ofstream(directory.path() / name) << "old"; };
  const auto names = {"frontier-passes-T=0.5.svg", "frontier-compute-T=1--odd.png",
                      "frontier-notes.svg", "frontier-passes-T=1.txt"};
  for (const char* name : names) touch(name);
  const auto points = measure_points({}, items(), Share(), {100, 20});
  write_frontier_report(points, FrontierRun(), directory.path(), "svg");
  EXPECT_FALSE(std::filesystem::exists(directory.path() / "frontier-passes-T=0.5.svg"));
  EXPECT_FALSE(std::filesystem::exists(directory.path() / "frontier-compute-T=1--odd.png"));
  EXPECT_TRUE(std::filesystem::exists(directory.path() / "frontier-notes.svg"));
  EXPECT_TRUE(std::filesystem::exists(directory.path() / "frontier-passes-T=1.txt"));
}

TEST(Bootstrap, OfAMedianHoldsIt) {
  std::vector<double> values;
  for (int i = 0; i < 101; ++i) values.push_back(i);
  EXPECT_EQ(median(values), 50);
  EXPECT_EQ(median({1, 2, 4, 3}), 2.5);
  EXPECT_TRUE(std::isnan(median({})));
  const Interval interval = bootstrap_median(values);
  // The number of values below a resample's middle is binomial(101, 1/2) with standard deviation 5.
  // So its median is within 1.96 of these, give or take two for the error of the interval's ends.
  EXPECT_NEAR(interval.low, 50 - 1.96 * 5, 2);
  EXPECT_NEAR(interval.high, 50 + 1.96 * 5, 2);
}

}  // namespace
}  // namespace outrider::eval
