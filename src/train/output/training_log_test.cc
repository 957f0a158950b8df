// SPDX-License-Identifier: Apache-2.0
#include "train/output/training_log.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "outrider/error.h"
#include "tests/support/temporary_directory.h"
#include "train/schedule.h"

namespace outrider::train {
namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(TrainingLog, KeepsWhatTheCheckpointHasSeen) {
  const test::TemporaryDirectory directory;
  const auto file = directory.path() / "log.jsonl";
  {
    TrainingLog log(file, 0);
    for (int step = 1; step <= 5; ++step) {
      log.append("{\"step\":" + std::to_string(step) + ",\"loss\":1.5}");
    }
  }
  std::ofstream(file, std::ios::app) << "{\"step\":6,\"lo";  // killed while writing
  { TrainingLog log(file, 3); }
  EXPECT_EQ(text_of(file),
            "{\"step\":1,\"loss\":1.5}\n{\"step\":2,\"loss\":1.5}\n{\"step\":3,\"loss\":1.5}\n");
  { TrainingLog log(file, 0); }
  EXPECT_EQ(text_of(file), "");
}

TEST(TrainingLog, SaysWhereItCannotWrite) {
  EXPECT_THROW(TrainingLog("/nowhere/log.jsonl", 0), Error);
}

TEST(TrainingLog, DrawsAPictureWhereThereIsGnuplot) {
  const test::TemporaryDirectory directory;
  const auto file = directory.path() / "log.jsonl";
  {
    TrainingLog log(file, 0);
    for (int step = 1; step <= 50; ++step) {
      log.append("{\"step\":" + std::to_string(step) + ",\"loss\":" + std::to_string(5.0 / step) +
                 (step % 10 == 0 ? ",\"held_out_loss\":2.0}" : "}"));
    }
  }
  const auto svg = directory.path() / "loss.svg";
  if (!plot_training_log(file, svg)) GTEST_SKIP() << "no gnuplot";
  const std::string picture = text_of(svg);
  EXPECT_NE(picture.find("<svg"), std::string::npos);
  EXPECT_NE(picture.find("held out"), std::string::npos);
}

TEST(TrainingLog, APictureLeavesOutWhatIsNoNumber) {
  const test::TemporaryDirectory directory;
  const auto file = directory.path() / "log.jsonl";
  std::ofstream(file) << "{\"step\":1,\"loss\":2.0,\"held_out_loss\":null}\n"
                         "{\"step\":2,\"loss\":null}\n{\"step\":null,\"loss\":1.0}\n"
                         "{\"step\":3,\"loss\":1.0}\n";
  const auto svg = directory.path() / "loss.svg";
  if (!plot_training_log(file, svg)) GTEST_SKIP() << "no gnuplot";
  EXPECT_NE(text_of(svg).find("<svg"), std::string::npos);
}

TEST(Schedule, ClimbsThenFallsAsHalfACosine) {
  const Schedule schedule{.peak = 2, .final_share = 0.1, .n_warmup = 4, .n_steps = 15};
  EXPECT_DOUBLE_EQ(schedule.rate(0), 0.5);
  EXPECT_DOUBLE_EQ(schedule.rate(3), 2);
  EXPECT_DOUBLE_EQ(schedule.rate(4), 2);
  EXPECT_DOUBLE_EQ(schedule.rate(9), 2 * (0.1 + 0.9 / 2));  // the middle of the cosine
  EXPECT_DOUBLE_EQ(schedule.rate(14), 0.2);
}

}  // namespace
}  // namespace outrider::train
