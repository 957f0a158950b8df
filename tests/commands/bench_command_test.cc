// SPDX-License-Identifier: Apache-2.0
// outrider bench as its users see it: the format of the figures, and refused input. Models are made
// on the spot; the times of models this small mean nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/models/tiny_model.h"
#include "tests/support/models/tiny_pair.h"
#include "tests/support/run_program.h"
#include "tests/support/temporary_directory.h"

namespace outrider::test {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using Words = std::vector<std::string>;

class BenchCommand : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = new TemporaryDirectory;
    write_tiny_pair(directory_->path());
  }
  static void TearDownTestSuite() { delete directory_; }

  static std::string path(const char* name) { return (directory_->path() / name).string(); }
  static ProgramRun bench(const Words& more, const ProgramInput& input = {}) {
    Words words = {"bench", "--model", path("target"), "--threads", "1"};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(words, input);
  }
  static json figures(Words words) {
    words.push_back("--json");
    const ProgramRun done = bench(words);
    EXPECT_EQ(done.status, 0) << done.err;
    EXPECT_THAT(done.err, IsEmpty());
    return json::parse(done.out);
  }
  static void expect_times(const json& object) {
    EXPECT_GT(object["min_seconds"].get<double>(), 0);
    EXPECT_GE(object["seconds"], object["min_seconds"]);
    EXPECT_GE(object["max_seconds"], object["seconds"]);
  }

  static TemporaryDirectory* directory_;
};
TemporaryDirectory* BenchCommand::directory_ = nullptr;

TEST_F(BenchCommand, PassesGiveSecondsAndRatios) {
  const json object = figures({"--passes", "--rows", "1,3,16", "--context", "20", "--prefill", "30",
                               "--weights", "int8", "--repeat", "3"});
  EXPECT_EQ(object["model"], path("target"));
  EXPECT_EQ(object["weights"], "int8");
  EXPECT_EQ(object["kv"], "bf16");
  EXPECT_EQ(object["threads"], 1);
  EXPECT_EQ(object["ranks"], 1);
  EXPECT_FALSE(object.contains("rank_threads"));
  EXPECT_EQ(object["context"], 20);
  EXPECT_EQ(object["nodes"], "chain");
  EXPECT_EQ(object["rounds"], 3);
  EXPECT_FALSE(object["kernels"].get<std::string>().empty());
  const json& passes = object["passes"];
  ASSERT_EQ(passes.size(), 3U);
  const int rows[] = {1, 3, 16};
  for (std::size_t index = 0; index < 3; ++index) {
    EXPECT_EQ(passes[index]["rows"], rows[index]);
    expect_times(passes[index]);
    const double ratio =
        passes[index]["seconds"].get<double>() / passes[0]["seconds"].get<double>();
    EXPECT_DOUBLE_EQ(passes[index]["ratio"].get<double>(), ratio);
  }
  EXPECT_EQ(object["prefill"]["tokens"], 30);
  expect_times(object["prefill"]);
  const double bandwidth = object["bandwidth_bytes_per_second"];
  EXPECT_GE(bandwidth, object["bandwidth_min_bytes_per_second"].get<double>());
  EXPECT_LE(bandwidth, object["bandwidth_max_bytes_per_second"].get<double>());
  EXPECT_GT(object["one_stream_bytes_per_second"].get<double>(), 0);
  const double weight_bytes = object["weight_bytes"];
  const double share = weight_bytes / (passes[0]["seconds"].get<double>() * bandwidth);
  EXPECT_NEAR(object["bandwidth_share"].get<double>() / share, 1, 1e-12);
}

TEST_F(BenchCommand, PassesRunOnADevice) {
  const Words words = {"--passes", "--rows", "1,3",      "--weights", "int8",
                       "--repeat", "1",      "--device", "host"};
  const json object = figures(words);
  EXPECT_EQ(object["device"], "host");
  EXPECT_EQ(object["passes"].size(), 2U);
  expect_times(object["passes"][1]);
  EXPECT_FALSE(object.contains("bandwidth_share"));  // that of the processor's memory
  const ProgramRun shown = bench(words);
  EXPECT_EQ(shown.status, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr(", on host, "));
  EXPECT_THAT(shown.out, Not(HasSubstr("memory reads")));
}

TEST_F(BenchCommand, PassesPrintATable) {
  const ProgramRun done = bench({"--passes", "--rows", "2", "--nodes", "star", "--repeat", "1"});
  EXPECT_EQ(done.status, 0);
  EXPECT_THAT(done.err, IsEmpty());
  EXPECT_THAT(done.out,
              AllOf(HasSubstr("context 0\n"), HasSubstr("\n    1 "), HasSubstr("1.00x  ="),
                    HasSubstr("\n    2 "), HasSubstr("memory reads at")));
}

// For a mixture of experts: how many experts passes read, and how many bytes one row leaves unread.
TEST_F(BenchCommand, PassesCountExperts) {
  TinyShape shape;
  shape.n_experts = 6;
  shape.n_experts_used = 2;
  const std::string mixture = path("mixture");
  write_hugging_face(make_tiny_model(shape), mixture);
  const Words words = {"bench",    "--model", mixture, "--threads", "1",
                       "--passes", "--rows",  "1,16",  "--repeat",  "1"};
  Words as_json = words;
  as_json.push_back("--json");
  const ProgramRun done = run_program(as_json);
  ASSERT_EQ(done.status, 0) << done.err;
  const json object = json::parse(done.out);
  EXPECT_EQ(object["experts"], 6);
  EXPECT_EQ(object["experts_used"], 2);
  // Three matrices of 64 by 96 in f32; four of six experts idle in each of two layers.
  EXPECT_EQ(object["idle_bytes"], 2 * 4 * 3 * 64 * 96 * 4);
  const json& passes = object["passes"];
  EXPECT_EQ(passes[0]["experts_per_layer"], 2);
  EXPECT_GT(passes[1]["experts_per_layer"].get<double>(), 2);
  EXPECT_LE(passes[1]["experts_per_layer"].get<double>(), 6);
  const double n_read = object["weight_bytes"].get<double>() - object["idle_bytes"].get<double>();
  const double share = n_read / (passes[0]["seconds"].get<double>() *
                                 object["bandwidth_bytes_per_second"].get<double>());
  EXPECT_NEAR(object["bandwidth_share"].get<double>() / share, 1, 1e-12);
  EXPECT_THAT(run_program(words).out, AllOf(HasSubstr("2 of 6 experts"), HasSubstr("experts  in")));
  EXPECT_FALSE(figures({"--passes", "--rows", "1", "--repeat", "1"}).contains("experts"));

  // Mapped: all 36 matrices of the mixture are in the file, and memory for ten.
  constexpr int kMatrix = 64 * 96 * 4;
  as_json.insert(as_json.end(),
                 {"--experts", "mapped", "--experts-memory", std::to_string(10 * kMatrix)});
  const ProgramRun mapped = run_program(as_json);
  ASSERT_EQ(mapped.status, 0) << mapped.err;
  EXPECT_EQ(json::parse(mapped.out)["mapped_bytes"], 36 * kMatrix);
  EXPECT_EQ(json::parse(mapped.out)["expert_memory_bytes"], 10 * kMatrix);
}

TEST_F(BenchCommand, SimulatesAcceptance) {
  const json object = figures({"--simulate-acceptance", "0.8", "--draft", path("draft"),
                               "--lengths", "2,5", "--tree", "chain:length=3", "--max-tokens",
                               "200", "--context", "5", "--seed", "4", "--repeat", "1"});
  EXPECT_EQ(object["simulated_acceptance"], 0.8);
  EXPECT_EQ(object["seed"], 4);
  EXPECT_EQ(object["max_tokens"], 200);
  EXPECT_EQ(object["drafter"], "model:" + path("draft"));
  expect_times(object["plain"]);
  ASSERT_EQ(object["trees"].size(), 3U);
  EXPECT_EQ(object["trees"][0]["tree"], "chain:length=3");
  EXPECT_EQ(object["trees"][1]["tree"], "chain:length=2");
  bool has_fastest = false;
  for (const json& tree : object["trees"]) {
    expect_times(tree);
    EXPECT_EQ(tree["emitted"], 200);
    EXPECT_EQ(tree["drafter_passes"], tree["drafted"]);
    EXPECT_EQ(tree["tau"].get<double>(), 200 / tree["target_passes"].get<double>());
    // About 150 tokens are judged: four standard deviations of 0.033.
    EXPECT_NEAR(tree["judged_acceptance"].get<double>(), 0.8, 0.13);
    EXPECT_DOUBLE_EQ(tree["speedup"].get<double>(),
                     object["plain"]["seconds"].get<double>() / tree["seconds"].get<double>());
    has_fastest = has_fastest || tree["tree"] == object["fastest"];
  }
  EXPECT_TRUE(has_fastest);
}

TEST_F(BenchCommand, SimulationPrintsATable) {
  const ProgramRun done = bench({"--simulate-acceptance", "0.5", "--draft", path("draft"),
                                 "--max-tokens", "20", "--repeat", "1"});
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_THAT(done.out, AllOf(HasSubstr("speed-up"), HasSubstr("\nplain "),
                              HasSubstr("\nchain:length=5 "), HasSubstr("to the last id")));
}

TEST_F(BenchCommand, RefusesInOneLine) {
  struct Case {
    Words words;
    const char* problem;
  };
  const Words draft = {"--draft", path("draft")};
  const auto simulate = [&](const Words& more) {
    Words words = {"--simulate-acceptance", "0.8", "--draft", path("draft")};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  for (const Case& bad :
       {Case{{}, "one of --passes, --simulate-acceptance, --methods, --plan, got none"},
        Case{{"--json"}, "one of --passes, --simulate-acceptance, --methods, --plan, got none"},
        Case{simulate({"--passes"}), "got several"},
        Case{{"--passes", "--rows", "0"}, "--rows"},
        Case{{"--passes", "--rows", "1,257"}, "numbers from 1 to 256, got 257"},
        Case{{"--passes", "--rows", "4,2"}, "ascending"},
        Case{{"--passes", "--rows", "4,,8"}, "--rows"},
        Case{{"--passes", "--rows", ""}, "--rows"},
        Case{{"--passes", "--context", "-1"}, "--context"},
        Case{{"--passes", "--context", "1000"}, "context"},
        Case{{"--passes", "--prefill", "0"}, "--prefill"},
        Case{{"--passes", "--prefill", "2000"}, "prefill"},
        Case{{"--passes", "--repeat", "0"}, "--repeat"},
        Case{{"--passes", "--nodes", "ring"}, "--nodes"},
        Case{{"--passes", "--weights", "int3"}, "--weights"},
        Case{{"--passes", "--rule", "chow:alpha=1"}, "--rule"},
        Case{{"--passes", "--draft", "x"}, "--draft: expected no such flag with --passes"},
        Case{{"--simulate-acceptance", "0.8"}, "--draft"},
        Case{{"--simulate-acceptance", "2", "--draft", "x"}, "[0, 1]"},
        Case{{"--simulate-acceptance", "nan", "--draft", "x"}, "[0, 1]"},
        Case{{"--simulate-acceptance", "0.8", "--drafter", "ngram"}, "ngram"},
        Case{simulate({"--rows", "4"}), "--rows: expected no such flag"},
        Case{simulate({"--tree", "widths:2"}), "a chain"},
        Case{simulate({"--lengths", "0"}), "--lengths"},
        Case{simulate({"--lengths", "500"}), "255"},
        Case{simulate({"--max-tokens", "2000"}), "context"}}) {
    const ProgramRun refused = bench(bad.words);
    EXPECT_EQ(refused.status, 2) << bad.problem << refused.err;
    EXPECT_THAT(refused.out, IsEmpty());
    EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused.err;
    EXPECT_THAT(refused.err, AllOf(StartsWith("outrider: "), HasSubstr(bad.problem)));
  }
  const ProgramRun missing = run_program({"bench", "--passes", "--model", path("nowhere")});
  EXPECT_EQ(missing.status, 1);
  EXPECT_THAT(missing.err, HasSubstr("nowhere"));
}

TEST_F(BenchCommand, CtrlCEndsItWithoutFigures) {
  using std::chrono::milliseconds;
  for (const Words& words :
       {Words{"--passes", "--repeat", "1000000"},
        Words{"--simulate-acceptance", "0.8", "--draft", path("draft"), "--repeat", "1000000"}}) {
    const ProgramRun stopped = bench(words, {.interrupt_after = milliseconds(1500)});
    EXPECT_EQ(stopped.status, 130) << stopped.err;
    EXPECT_THAT(stopped.out, IsEmpty());
  }
}

TEST_F(BenchCommand, HelpHasExamples) {
  const ProgramRun help = run_program({"bench", "--help"});
  EXPECT_EQ(help.status, 0);
  EXPECT_THAT(help.out, AllOf(HasSubstr("Examples:"), HasSubstr("--simulate-acceptance"),
                              HasSubstr("--rows")));
  EXPECT_THAT(run_program({"--help"}).out, HasSubstr("  bench "));
}

}  // namespace
}  // namespace outrider::test
