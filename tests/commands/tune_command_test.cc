// SPDX-License-Identifier: Apache-2.0
// outrider tune as its users see it. Models are made on the spot; the times of models this small
// mean nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/models/tiny_pair.h"
#include "tests/support/run_program.h"
#include "tests/support/temporary_directory.h"

namespace outrider::test {
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

  // If only the target's passes cost time, all nodes are used.
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

TEST_F(TuneCommand, MeasuresOnADevice) {
  const ProgramRun layers =
      tune("layers", on_text({"--device", "host", "--weights", "int8", "--json"}));
  EXPECT_EQ(layers.status, 0) << layers.err;
  EXPECT_FALSE(json::parse(layers.out)["sets"].empty());
  const ProgramRun tree =
      tune("tree", on_text({"--draft", path("draft"), "--budget", "7", "--out", path("there.json"),
                            "--device", "host", "--weights", "int8"}));
  EXPECT_EQ(tree.status, 0) << tree.err;
  const ProgramRun refused = tune("layers", on_text({"--device", "nowhere"}));
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err, HasSubstr("nowhere"));
}

// The shipped target in a few seconds: one screen, a report, and a profile that generate accepts.
TEST_F(TuneCommand, SaysOnOneScreenWhichDrafterPays) {
  const std::string models = std::string(OUTRIDER_SOURCE_DIR) + "/models";
  const std::string profile = path("learnt.json");
  const std::string report = path("tuning.json");
  const ProgramRun done =
      run_program({"tune", "--model", models + "/target", "--draft", models + "/drafter",
                   "--threads", "1", "--seconds", "3", "--profile", profile, "--json", report});
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_THAT(done.err, IsEmpty());
  std::istringstream lines(done.out);
  std::string line;
  std::getline(lines, line);  // The model, whose path may be long.
  int n_lines = 1;
  for (; std::getline(lines, line); ++n_lines) EXPECT_LE(line.size(), 80U) << line;
  EXPECT_LE(n_lines, 26);  // 24 for three drafters, plus the lines of a fourth.
  for (const char* const part :
       {"rows of a pass", "suffix  ", "ngram  ", "lookahead  ", "model:drafter  ",
        "with drafts of a fixed shape:", "  chain:length=8",
        "\ntemperature 0: ", "\ntemperature 1: ", "What was learnt is kept"}) {
    EXPECT_THAT(done.out, HasSubstr(part));
  }
  const json object = json::parse(std::ifstream(report));
  EXPECT_EQ(object["format"], "outrider-tuning");
  EXPECT_EQ(object["complete"], true);
  ASSERT_EQ(object["advice"].size(), 2U);
  for (const json& method : object["methods"]) EXPECT_EQ(method["differs"], false) << method;

  const json learnt = json::parse(std::ifstream(profile));
  EXPECT_EQ(learnt["version"], 2);
  ASSERT_EQ(learnt["drafters"].size(), 4U);
  const Words generate = {
      "generate", "--model",  models + "/target",       "--drafter", "suffix", "--max-tokens",
      "20",       "--prompt", "She opened the letter,", "--profile", profile,  "--threads",
      "1"};
  const ProgramRun after = run_program(generate);
  EXPECT_EQ(after.status, 0);
  EXPECT_THAT(after.err, IsEmpty());
  const json kept = json::parse(std::ifstream(profile));
  ASSERT_EQ(kept["drafters"].size(), 4U);
  EXPECT_EQ(kept["drafters"][0]["drafter"], "suffix");
  // It continued from the profile and left the other entries unchanged.
  const auto of = [](const json& profile_of, const std::string& drafter) {
    for (const json& one : profile_of["drafters"]) {
      if (one["drafter"] == drafter) return one;
    }
    return json();
  };
  EXPECT_EQ(of(kept, "ngram")["greedy"], of(learnt, "ngram")["greedy"]);
  EXPECT_EQ(of(kept, "suffix")["drawn"], of(learnt, "suffix")["drawn"]);
  EXPECT_NE(of(kept, "suffix")["greedy"], of(learnt, "suffix")["greedy"]);
  EXPECT_GT(of(kept, "suffix")["greedy"]["depths"][0][0].get<double>(), 20);
}

TEST_F(TuneCommand, CtrlCPrintsWhatWasFound) {
  const std::string report = path("stopped.json");
  const ProgramRun stopped = run_program(
      {"tune", "--model", path("target"), "--drafter", "suffix", "--only", "--threads", "1",
       "--seconds", "100000", "--profile", path("stopped_profile.json"), "--json", report},
      {.interrupt_after = std::chrono::milliseconds(5000)});
  EXPECT_EQ(stopped.status, 130);
  EXPECT_THAT(stopped.err, HasSubstr("interrupted; this is what there is"));
  const json object = json::parse(std::ifstream(report));
  EXPECT_EQ(object["complete"], false);
  if (object["methods"].empty()) return;  // The machine is too busy for a round by then.
  EXPECT_THAT(stopped.out, HasSubstr("\nsuffix  "));
  EXPECT_EQ(json::parse(std::ifstream(path("stopped_profile.json")))["drafters"].size(), 1U);
}

TEST_F(TuneCommand, TriesWhatItIsTold) {
  const auto methods_with = [](Words words) {
    const std::string report = path("told.json");
    for (const char* const more : {"--model", "--threads", "1", "--seconds", "0.001", "--profile",
                                   "none", "--max-tokens", "8", "--json"}) {
      words.emplace_back(more);
      if (words.back() == "--model") words.push_back(path("target"));
    }
    words.push_back(report);
    words.insert(words.begin(), "tune");
    const ProgramRun done = run_program(words);
    EXPECT_EQ(done.status, 0) << done.err;
    EXPECT_EQ(done.out.find("is kept"), std::string::npos);
    std::set<std::string> drafters;
    const json object = json::parse(std::ifstream(report));
    for (const json& method : object["methods"]) drafters.insert(method["drafter"]);
    return std::pair(drafters, object);
  };
  const auto [named, on_built_in] =
      methods_with({"--only", "--drafter", "ngram:min=1", "--draft", path("draft")});
  EXPECT_EQ(named, (std::set<std::string>{"ngram:min=1", "model:" + path("draft")}));
  EXPECT_EQ(on_built_in["drafters"]["prompts"].size(), 8U);
  const auto [free, on_text] = methods_with({"--text", path("text.txt"), "--temperatures", "0.5"});
  EXPECT_EQ(free, (std::set<std::string>{"suffix", "ngram", "lookahead"}));
  EXPECT_EQ(on_text["advice"][0]["temperature"], 0.5);
  EXPECT_EQ(on_text["drafters"]["prompts"][0]["set"], "texts");
  std::ofstream(path("prompts.jsonl")) << "{\"turns\": [\"one two\"]}\n{\"turns\": [\"three\"]}\n";
  const auto prompted = methods_with({"--prompts", path("prompts.jsonl")});
  EXPECT_EQ(prompted.second["drafters"]["prompts"][1]["set"], "prompts");
}

TEST_F(TuneCommand, RefusesDraftersTextsAndPlacesInALine) {
  const auto refused = [](const Words& more, int status, const char* named) {
    Words words = {"tune", "--model", path("target"), "--threads", "1", "--seconds", "0.001"};
    words.insert(words.end(), more.begin(), more.end());
    const ProgramRun done = run_program(words);
    EXPECT_EQ(done.status, status) << named << ": " << done.err;
    EXPECT_THAT(done.err, HasSubstr(named));
    EXPECT_THAT(done.out, IsEmpty());
    EXPECT_EQ(std::count(done.err.begin(), done.err.end(), '\n'), 1) << done.err;
  };
  refused({"--drafter", "parrot"}, 2, "parrot");
  refused({"--drafter", "suffix", "--drafter", "suffix"}, 2, "suffix twice");
  refused({"--only"}, 2, "--only");
  refused({"--layers"}, 2, "--text");
  refused({"--text", path("text.txt"), "--prompts", path("text.txt")}, 2, "got both");
  refused({"--text", path("none")}, 1, "none");
  refused({"--prompts", path("none")}, 1, "none");
  refused({"--seconds", "-1"}, 2, "--seconds");
  refused({"--temperatures", "0,0"}, 2, "0 twice");
  refused({"--json", path("target/config.json")}, 1, "another file");
  refused({"--profile", path("target/config.json")}, 1, "another file");
  refused({"--only", "--drafter", "model:" + path("none"), "--profile", "none"}, 1, "none");
  refused({"tree", "--out", path("x"), "--text", path("text.txt"), "--model", path("target")}, 2,
          "behind the command tree");
  // A drafter that does not load is named, and the others are measured.
  const ProgramRun lacking =
      run_program({"tune", "--model", path("target"), "--threads", "1", "--seconds", "0.001",
                   "--profile", "none", "--drafter", "model:" + path("none")});
  EXPECT_EQ(lacking.status, 1);
  EXPECT_THAT(lacking.err, HasSubstr("left out model:"));
  EXPECT_THAT(lacking.out, HasSubstr("\nsuffix  "));
}

TEST_F(TuneCommand, HelpFitsAScreen) {
  const ProgramRun help = run_program({"tune", "--help"});
  EXPECT_EQ(help.status, 0);
  EXPECT_LE(std::count(help.out.begin(), help.out.end(), '\n'), 50);
  for (const char* const part : {"tune [COMMAND]", "outrider tune --model", "outrider tune tree"}) {
    EXPECT_THAT(help.out, HasSubstr(part));
  }
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
  EXPECT_THAT(alone.err, HasSubstr("--model PATH, or one of the commands tree, layers"));
  EXPECT_THAT(run_program({"tune", "tree", "--help"}).out, HasSubstr("sequoia:profile="));
}

}  // namespace
}  // namespace outrider::test
