// SPDX-License-Identifier: Apache-2.0
// Profiles of drafting (--profile): across runs with other drafters, in the server, and from
// earlier versions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/models/cli_models.h"
#include "tests/support/run_program.h"
#include "tests/support/temporary_directory.h"

namespace outrider::test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Profile : public ::testing::Test {
 protected:
  std::string file() const { return (directory_.path() / "profile.json").string(); }
  json read() const {
    std::ifstream stream(file());
    return json::parse(stream);
  }
  void write(const json& profile) const { std::ofstream(file()) << profile; }
  ProgramRun generate(const std::string& drafter) const {
    return run_program({"generate", "--model", CliModels::get().target(), "--threads", "1",
                        "--prompt", "abc", "--ignore-eos", "--max-tokens", "40", "--drafter",
                        drafter, "--profile", file()});
  }
  // Runs until Ctrl-C ends it, which comes once it says where it listens: the profile is read
  // before.
  ProgramRun serve(const Words& more) const {
    Words words = {"serve", "--port", "0", "--threads", "1"};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(words, {.interrupt_after = std::chrono::minutes(2),
                               .interrupt_when = [](const ProgramRun& so_far) {
                                 return so_far.err.find(" at http://") != std::string::npos;
                               }});
  }

  TemporaryDirectory directory_;
};

TEST_F(Profile, ARunWithAnotherDrafterKeepsWhatWasKnown) {
  ASSERT_EQ(generate("suffix").status, 0);
  const json first = read();
  ASSERT_EQ(first["drafters"].size(), 1U);
  const ProgramRun second = generate("ngram");
  ASSERT_EQ(second.status, 0);
  EXPECT_THAT(second.err, IsEmpty());
  const json both = read();
  ASSERT_EQ(both["drafters"].size(), 2U);
  EXPECT_EQ(both["drafters"][0]["drafter"], "ngram");
  EXPECT_EQ(both["drafters"][1]["greedy"], first["drafters"][0]["greedy"]);
  // The first drafter continues from the file.
  ASSERT_EQ(generate("suffix").status, 0);
  const json again = read();
  EXPECT_EQ(again["drafters"][0]["drafter"], "suffix");
  for (const char* const dist : {"greedy", "drawn"}) {  // Times follow the current cost of passes.
    EXPECT_EQ(again["drafters"][1][dist], both["drafters"][0][dist]);
  }
  EXPECT_GT(again["drafters"][0]["greedy"]["depths"][0][0],
            first["drafters"][0]["greedy"]["depths"][0][0]);
}

TEST_F(Profile, OfTheFirstVersionIsMeasuredAnew) {
  ASSERT_EQ(generate("suffix").status, 0);
  json old = read();
  old["version"] = 1;
  old["drafters"][0]["drafter"] = "ngram";
  write(old);
  const ProgramRun run = generate("suffix");
  EXPECT_EQ(run.status, 0);
  EXPECT_EQ(n_lines(run.err), 1);
  EXPECT_THAT(run.err, HasSubstr("profile.json: expected version 2, got 1; costs of passes are "
                                 "measured anew"));
  EXPECT_EQ(read()["version"], 2);
  ASSERT_EQ(read()["drafters"].size(), 1U);
  EXPECT_EQ(read()["drafters"][0]["drafter"], "suffix");
}

TEST_F(Profile, TheServerReadsAndKeepsIt) {
  ASSERT_EQ(generate("suffix").status, 0);
  json known = read();
  // A cost that no measurement gives shows whether the file was read.
  known["passes"] = json::parse("[[1, 1000.5], [2, 2000.5]]");
  write(known);
  const Words words = {"--model", CliModels::get().target(), "--drafter", "suffix", "--profile",
                       file()};
  const ProgramRun served = serve(words);
  EXPECT_EQ(served.status, 0) << served.err;
  EXPECT_EQ(served.err.find("anew"), std::string::npos) << served.err;
  EXPECT_EQ(read()["passes"], known["passes"]);
  EXPECT_EQ(read()["drafters"], known["drafters"]);

  std::ofstream(file()) << "{";
  const ProgramRun bad = serve(words);
  EXPECT_EQ(bad.status, 0) << bad.err;
  EXPECT_THAT(bad.err, HasSubstr("profile.json: expected JSON, got 1 bytes"));
  EXPECT_EQ(read()["version"], 2);
  EXPECT_FALSE(read()["passes"].empty());
}

TEST_F(Profile, OneFileIsNotSeveralModels) {
  expect_refused(
      run_program({"serve", "--models", CliModels::get().root().string(), "--profile", file()}), 2,
      "--profile");
}

}  // namespace
}  // namespace outrider::test
