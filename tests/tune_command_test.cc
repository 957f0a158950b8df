// outrider tune as its users meet it. Models are made on the spot; the times of models this small
// mean nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/run_program.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/tiny_pair.h"

namespace outrider::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Words = std::vector<std::string>;

class TuneCommand : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = new TemporaryDirectory;
    write_tiny_pair(directory_->path());
    write_tiny_texts(directory_->path() / "text.txt");
  }
  static void TearDownTestSuite() { delete directory_; }

  static std::string path(const char* name) { return (directory_->path() / name).string(); }
  static ProgramRun tune(const char* what, const Words& more) {
    Words words = {"tune", what, "--model", path("target"), "--threads", "1"};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(words);
  }
  static Words on_text(Words more) {
    Words words = {
        "--text", path("text.txt"), "--separator", "|", "--texts", "4", "--prompt-tokens",
        "5",      "--max-tokens",   "20"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  static TemporaryDirectory* directory_;
};
TemporaryDirectory* TuneCommand::directory_ = nullptr;

TEST_F(TuneCommand, ATreesProfileServesGenerate) {
  const std::string profile = path("profile.json");
  const Words words = on_text({"--draft", path("draft"), "--budget", "7", "--out", profile});
  const ProgramRun shown = tune("tree", words);
  EXPECT_EQ(shown.status, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("child  stands\n    1  0."));
  EXPECT_THAT(shown.out, HasSubstr("--tree sequoia:profile=" + profile));
  Words for_scripts = words;
  for_scripts.push_back("--json");
  const ProgramRun done = tune("tree", for_scripts);
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_THAT(done.err, IsEmpty());
  const json object = json::parse(done.out);
  EXPECT_EQ(object["accept_by_rank"].size(), 8U);
  EXPECT_EQ(object["passes"].back()["rows"], 8);
  ASSERT_EQ(object["plans"].size(), 4U);  // budgets 1, 2, 4 and 7
  EXPECT_EQ(object["plans"][3]["budget"], 7);

  // Where nothing but the target's passes costs, all nodes are used.
  json flat = json::parse(std::ifstream(profile));
  flat["draft_seconds"] = flat["level_seconds"] = 0;
  flat["passes"] = json::parse(R"([{"rows": 1, "seconds": 1}, {"rows": 8, "seconds": 1.001}])");
  std::ofstream(profile) << flat;
  const Words generate = {"generate",     "--model", path("target"), "--prompt", "A test",
                          "--max-tokens", "30",      "--ignore-eos", "--json"};
  Words drafted = generate;
  for (const std::string& word : {std::string("--draft"), path("draft"), std::string("--tree"),
                                  "sequoia:budget=6,profile=" + profile}) {
    drafted.push_back(word);
  }
  const json plain = json::parse(run_program(generate).out);
  const json planned = json::parse(run_program(drafted).out);
  EXPECT_EQ(planned["ids"], plain["ids"]);
  EXPECT_GT(planned["stats"]["tau"], 1.2);
  const double a_pass =
      planned["stats"]["drafted"].get<double>() / planned["stats"]["target_passes"].get<double>();
  EXPECT_GT(a_pass, 4);
  EXPECT_LE(a_pass, 6);
}

TEST_F(TuneCommand, LayersAreNamedAsADrafter) {
  const ProgramRun done = tune("layers", on_text({"--json"}));
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_THAT(done.err, IsEmpty());
  const json object = json::parse(done.out);
  ASSERT_FALSE(object["sets"].empty());
  const std::string drafter = object["sets"][0]["drafter"];
  EXPECT_THAT(drafter, HasSubstr("layerskip:skip="));
  EXPECT_EQ(run_program({"generate", "--model", path("target"), "--drafter", drafter, "--prompt",
                         "A", "--max-tokens", "5"})
                .status,
            0);
  const ProgramRun shown = tune("layers", on_text({}));
  EXPECT_EQ(shown.status, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr(drafter));
}

TEST_F(TuneCommand, SaysInALineWhatIsWrong) {
  struct Case {
    const char* what;
    Words words;
    int status;
    const char* named;
  };
  const std::string out = path("not-written.json");
  for (const Case& one : std::vector<Case>{
           {"tree", on_text({"--out", out}), 2, "--drafter"},
           {"tree", on_text({"--out", out, "--drafter", "ngram"}), 2, "a distribution"},
           {"tree", on_text({"--draft", path("draft")}), 2, "--out"},
           {"tree", on_text({"--draft", path("draft"), "--out", path("text.txt")}), 1,
            "another file than those that are read"},
           {"tree", {"--draft", path("draft"), "--out", out}, 2, "--text"},
           {"tree", {"--draft", path("draft"), "--out", out, "--text", path("none")}, 1, "none"},
           {"tree", on_text({"--draft", path("draft"), "--out", out, "--ranks", "64"}), 2, "63"},
           {"tree",
            {"--draft", path("draft"), "--out", out, "--text", path("text.txt")},
            1,
            "expected 40 places"},
           {"tree", on_text({"--draft", path("draft"), "--out", path("no/folder.json")}), 1,
            "folder.json"},
           {"tree", on_text({"--draft", path("draft"), "--out", path("draft")}), 1, "a folder"},
           {"layers", {"--text", path("none")}, 1, "none"},
           {"layers", on_text({"--trials", "0"}), 2, "--trials"},
       }) {
    const ProgramRun done = tune(one.what, one.words);
    EXPECT_EQ(done.status, one.status) << one.named << ": " << done.err;
    EXPECT_THAT(done.err, HasSubstr(one.named));
    EXPECT_THAT(done.out, IsEmpty());
    EXPECT_EQ(std::count(done.err.begin(), done.err.end(), '\n'), 1) << done.err;
    EXPECT_FALSE(std::filesystem::exists(out));
  }
  const ProgramRun alone = run_program({"tune"});
  EXPECT_EQ(alone.status, 2);
  EXPECT_THAT(alone.err, HasSubstr("tree or layers"));
  EXPECT_THAT(run_program({"tune", "tree", "--help"}).out, HasSubstr("sequoia:profile="));
}

}  // namespace
}  // namespace outrider::testing
