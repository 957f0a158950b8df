// SPDX-License-Identifier: Apache-2.0
// outrider bench --plan as its users see it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/run_program.h"

namespace outrider::test {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using Words = std::vector<std::string>;

ProgramRun plan(const Words& more) {
  Words words = {"bench", "--plan"};
  words.insert(words.end(), more.begin(), more.end());
  return run_program(words);
}

TEST(BenchPlanCommand, PrintsOneScreen) {
  const ProgramRun done = plan({"--model-shape", "llama-70b,llama-1b", "--device", "h200,l4",
                                "--weights", "q4_k", "--tree", "chain:5"});
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_THAT(done.err, IsEmpty());
  EXPECT_THAT(done.out,
              AllOf(HasSubstr("llama-3.1-70b"), HasSubstr("llama-3.2-1b"), HasSubstr("\nh200 "),
                    HasSubstr("\nl4 "), HasSubstr("memory"), HasSubstr("c(6) = "),
                    HasSubstr("tau = (1 - 0.7^6) / (1 - 0.7)"), HasSubstr("fixed: not known")));
  // All devices, and the line about experts.
  const ProgramRun most = plan({"--model-shape", "mixtral-8x7b,tinyllama-1.1b"});
  EXPECT_LE(std::count(most.out.begin(), most.out.end(), '\n'), 24) << most.out;
}

TEST(BenchPlanCommand, SaysHowTauCame) {
  const auto formula_of = [](const std::string& acceptance, const std::string& tree) {
    return plan({"--model-shape", "llama-8b", "--device", "l4", "--acceptance", acceptance,
                 "--tree", tree})
        .out;
  };
  EXPECT_THAT(formula_of("1", "chain:3"), HasSubstr("  tau = 3 + 1, as every token stands\n"));
  EXPECT_THAT(formula_of("0.5", "chain:0"), HasSubstr("  tau = (1 - 0.5^1) / (1 - 0.5) = 1.000\n"));
  // A chain uses the first share only, whatever the others are.
  EXPECT_THAT(formula_of("0.5,0.2", "chain:2"),
              HasSubstr("  tau = (1 - 0.5^3) / (1 - 0.5) = 1.750\n"));
  EXPECT_THAT(formula_of("0.5,0.2", "auto"), HasSubstr(", of the tree that 2 shares by rank plan"));
}

TEST(BenchPlanCommand, GivesJson) {
  const ProgramRun done = plan({"--model-shape", "mixtral-8x7b", "--acceptance", "0.5", "--tree",
                                "chain:length=2", "--context", "0", "--batch", "2", "--json"});
  ASSERT_EQ(done.status, 0) << done.err;
  const json object = json::parse(done.out);
  EXPECT_EQ(object["target"]["name"], "mixtral-8x7b");
  EXPECT_EQ(object["target"]["experts"], 8);
  EXPECT_EQ(object["target"]["weights"], "bf16");
  EXPECT_TRUE(object["drafter"].is_null());
  EXPECT_EQ(object["context"], 0);
  EXPECT_EQ(object["batch"], 2);
  EXPECT_GE(object["devices"].size(), 10U);
  for (const json& device : object["devices"]) {
    EXPECT_FALSE(device["source"].get<std::string>().empty());
    EXPECT_TRUE(device["fixed_seconds"].is_null());
    EXPECT_EQ(device["fp8_ops_per_second"].is_null(),
              device["name"].get<std::string>().starts_with("a"))
        << device;
    EXPECT_EQ(device["asked"]["nodes"], 2);
    EXPECT_EQ(device["asked"]["tau"], 1.75);
    EXPECT_EQ(device["asked"]["draft_seconds"], 0);
    const double speedup = 1.75 * device["plain"]["seconds"].get<double>() /
                           device["asked"]["pass_seconds"].get<double>();
    EXPECT_DOUBLE_EQ(device["asked"]["speedup"].get<double>(), speedup);
    EXPECT_GE(device["best"]["speedup"], device["asked"]["speedup"]);
  }
}

TEST(BenchPlanCommand, ReadsFiles) {
  const std::string models = std::string(OUTRIDER_SOURCE_DIR) + "/models/";
  const ProgramRun done =
      plan({"--model-shape", models + "target," + models + "drafter", "--device", "l4", "--json"});
  ASSERT_EQ(done.status, 0) << done.err;
  const json object = json::parse(done.out);
  EXPECT_EQ(object["target"]["dim"], 256);
  EXPECT_LT(object["drafter"]["parameters"], object["target"]["parameters"]);
  EXPECT_EQ(object["target"]["weights"], "bf16");
  EXPECT_EQ(object["target"]["weight_bytes"], 2 * object["target"]["parameters"].get<double>());
}

TEST(BenchPlanCommand, ChecksItselfOnAModel) {
  const ProgramRun done =
      plan({"--check", "--model", std::string(OUTRIDER_SOURCE_DIR) + "/models/drafter", "--threads",
            "1", "--rows", "1,3", "--context", "20", "--repeat", "1"});
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_THAT(done.out, AllOf(HasSubstr("attention was taken from it"),
                              HasSubstr(" of 2 predictions within 15%; ")));
  const ProgramRun bare =
      plan({"--check", "--model", std::string(OUTRIDER_SOURCE_DIR) + "/models/drafter", "--threads",
            "1", "--rows", "1,2", "--context", "0", "--repeat", "1"});
  EXPECT_THAT(bare.out, AllOf(HasSubstr("attention not measured"),
                              HasSubstr(" of 2 predictions within 15%; ")));
}

TEST(BenchPlanCommand, RefusesInOneLine) {
  struct Case {
    Words words;
    const char* problem;
  };
  const Words shape = {"--model-shape", "llama-8b"};
  const auto with = [&](const Words& more) {
    Words words = shape;
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  for (const Case& bad :
       {Case{{}, "--model-shape: expected a target"},
        Case{{"--model-shape", "a,b,c"}, "behind a comma, a drafter, got a,b,c"},
        Case{{"--model-shape", ",llama-1b"}, "behind a comma, a drafter, got ,llama-1b"},
        Case{{"--model-shape", "llama-8b,"}, "behind a comma, a drafter, got llama-8b,"},
        Case{{"--model-shape", "llama-9b"}, "a model's path or one of llama-2-7b, "},
        Case{with({"--device", "abacus"}), "one of h200, h100, "},
        Case{with({"--weights", "q9"}), "one of f32, "},
        Case{with({"--acceptance", "1.5"}), "[0, 1]"},
        Case{with({"--acceptance", "0.8,0.4"}), "1 at most together"},
        Case{with({"--acceptance", "nan"}), "[0, 1]"},
        Case{with({"--tree", "chain:-1"}), "N from 0 to 16, got chain:-1"},
        Case{with({"--tree", "chain:17"}), "N from 0 to 16, got chain:17"},
        Case{with({"--tree", "widths:2"}), "one of auto, chain:N"},
        Case{with({"--batch", "0"}), "--batch"},
        Case{with({"--batch", "99999999999"}), "--batch"},
        Case{with({"--context", "-1"}), "--context"},
        Case{with({"--model", "x"}), "--model: expected no such flag with --plan"},
        Case{with({"--rows", "2"}), "--rows: expected no such flag"},
        Case{with({"--passes"}), "got several"},
        Case{{"--check"}, "--model: expected a model's path, got none"},
        Case{{"--check", "--model", "x", "--device", "l4"}, "--device: expected no such flag"},
        Case{{"--check", "--model", "x", "--weights", "q4_k"}, "one of f32, bf16, int8, int4"}}) {
    const ProgramRun refused = plan(bad.words);
    EXPECT_EQ(refused.status, 2) << bad.problem << refused.err;
    EXPECT_THAT(refused.out, IsEmpty());
    EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused.err;
    EXPECT_THAT(refused.err, AllOf(StartsWith("outrider: "), HasSubstr(bad.problem)));
  }
  const ProgramRun file =
      plan({"--model-shape", std::string(OUTRIDER_SOURCE_DIR) + "/models/target/config.json"});
  EXPECT_EQ(file.status, 1);
  EXPECT_EQ(std::count(file.err.begin(), file.err.end(), '\n'), 1) << file.err;
  const ProgramRun stray = run_program({"bench", "--passes", "--model", "x", "--batch", "2"});
  EXPECT_EQ(stray.status, 2);
  EXPECT_THAT(stray.err, HasSubstr("--batch: expected no such flag with --passes"));
  const ProgramRun two = run_program({"bench", "--passes", "--model", "x", "--device", "l4,h200"});
  EXPECT_EQ(two.status, 2);
  EXPECT_THAT(two.err, HasSubstr("--device: expected one device, where passes run, got h200"));
}

}  // namespace
}  // namespace outrider::test
