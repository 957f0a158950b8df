// SPDX-License-Identifier: Apache-2.0
// outrider eval --perplexity, the program itself. The figures are tested in
// eval/along_texts/text_likelihood.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/run_program.h"

namespace outrider::test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string kModel = OUTRIDER_SOURCE_DIR "/models/drafter";
const std::string kText = OUTRIDER_SOURCE_DIR "/LICENSE";

ProgramRun run(const std::vector<std::string>& more) {
  std::vector<std::string> words = {"eval", "--perplexity", "--model", kModel, "--threads", "1"};
  words.insert(words.end(), more.begin(), more.end());
  return run_program(words);
}

TEST(EvalPerplexity, ScoresWindowsOfAText) {
  const ProgramRun done =
      run({"--text", kText, "--window", "64", "--tokens", "200", "--weights", "f32", "--json"});
  ASSERT_EQ(done.status, 0) << done.err;
  const auto json = nlohmann::json::parse(done.out);
  EXPECT_EQ(json["window"], 64);
  EXPECT_EQ(json["windows"], 3);
  EXPECT_EQ(json["tokens"], 3 * 31);
  EXPECT_EQ(json["begin_token"], true);
  // Better than a uniform guess among the 4,096 tokens.
  EXPECT_GT(json["perplexity"], 2);
  EXPECT_LT(json["perplexity"], 4096);
  EXPECT_DOUBLE_EQ(json["perplexity"].get<double>(), std::exp(json["nll_per_token"].get<double>()));
  EXPECT_GT(json["standard_error"], 0);

  const ProgramRun lines = run({"--text", kText, "--window", "64", "--tokens", "200"});
  EXPECT_THAT(lines.out, StartsWith("perplexity  "));
  EXPECT_THAT(lines.out, HasSubstr("93 tokens in 3 windows of 64"));
}

TEST(EvalPerplexity, IsTheProcessorsOnADevice) {
  const std::vector<std::string> words = {"--text", kText,    "--window",  "64",  "--tokens",
                                          "200",    "--json", "--weights", "int8"};
  std::vector<std::string> on_device = words;
  on_device.insert(on_device.end(), {"--device", "host"});
  const ProgramRun done = run(on_device);
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_EQ(done.out, run(words).out);
}

TEST(EvalPerplexity, RefusesInOneLine) {
  const auto refused = [](const std::vector<std::string>& words, int status, const char* part) {
    const ProgramRun done = run(words);
    EXPECT_EQ(done.status, status) << part;
    EXPECT_THAT(done.err, HasSubstr(part));
    EXPECT_EQ(done.out, "");
  };
  refused({}, 2, "expected --text");
  refused({"--text", kText, kText}, 2, "expected one file, got 2");
  refused({"--text", kText, "--separator", "x"}, 2, "no such flag with --perplexity");
  refused({"--text", kText, "--window", "100000"}, 2, "expected 4 to the model's context");
  refused({"--text", kText, "--tokens", "63", "--window", "64"}, 1,
          "64 tokens, a window, at least");
  refused({"--text", kModel}, 1, "Is a directory");
}

}  // namespace
}  // namespace outrider::test
