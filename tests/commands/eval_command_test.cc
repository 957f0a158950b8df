// SPDX-License-Identifier: Apache-2.0
// outrider eval as its users see it. Models are made on the spot; real weights are used if present.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "io/verdict_log.h"
#include "tests/support/models/tiny_pair.h"
#include "tests/support/run_program.h"
#include "tests/support/temporary_directory.h"

namespace outrider::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using Words = std::vector<std::string>;

class EvalCommand : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = new TemporaryDirectory;
    write_tiny_pair(directory_->path());
  }
  static void TearDownTestSuite() { delete directory_; }

  static std::string path(const std::string& name) { return (directory_->path() / name).string(); }
  static std::string write(const std::string& name, const std::string& text) {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }
  static std::string read(const std::string& file) {
    std::ifstream stream(file);
    return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  }
  // A translation task with three items.
  static std::string task() {
    return write("task.json", R"({"name": "toy", "prompt": "{en} =", "reference": "de",
                                  "metric": ["bleu", "chrf"], "max_tokens": 8, "stop": ["\n"]})");
  }
  static std::string items() {
    return write("items.jsonl",
                 "{\"en\": \"a cat\", \"de\": \"eine Katze\"}\n"
                 "{\"en\": \"a dog\", \"de\": \"ein Hund\"}\n"
                 "{\"en\": \"a cow\", \"de\": \"eine Kuh\"}\n");
  }
  static ProgramRun eval(Words words) {
    Words all = {"eval", "--model", path("target"), "--threads", "1"};
    all.insert(all.end(), words.begin(), words.end());
    return run_program(all);
  }

  static TemporaryDirectory* directory_;
};
TemporaryDirectory* EvalCommand::directory_ = nullptr;

TEST_F(EvalCommand, RecordsVerdictsAndAnswersAsWithoutThem) {
  const Words words = {"--task", task(), "--data", items(), "--json", "--draft", path("draft")};
  Words recorded = words;
  recorded.insert(recorded.end(), {"--verdict-log", path("verdicts")});
  const ProgramRun without = eval(words);
  const ProgramRun with = eval(recorded);
  ASSERT_EQ(with.status, 0) << with.err;
  EXPECT_EQ(json::parse(with.out)["bleu"], json::parse(without.out)["bleu"]);
  VerdictLogReader reader(path("verdicts"));
  EXPECT_EQ(reader.read_new().size(), 3u);

  const ProgramRun alone = eval({"--task", task(), "--data", items(), "--verdict-log-top", "3"});
  EXPECT_EQ(alone.status, 2);
  EXPECT_THAT(alone.err, HasSubstr("--verdict-log DIR"));
  Words frontier = recorded;
  frontier.insert(frontier.end(), {"--frontier", "--rules", "exact"});
  EXPECT_EQ(eval(frontier).status, 2);
}

TEST_F(EvalCommand, PrintsASummary) {
  const ProgramRun run = eval({"--task", task(), "--data", items()});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(StartsWith("toy: 3 items\n"), HasSubstr("bleu"), HasSubstr("chrf"),
                             HasSubstr("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp")));
  EXPECT_THAT(run.err, IsEmpty());
  const ProgramRun again = eval({"--task", task(), "--data", items(), "--json", "--limit", "2"});
  const json summary = json::parse(again.out);
  EXPECT_EQ(summary["task"], "toy");
  EXPECT_EQ(summary["items"], 2);
  EXPECT_EQ(summary["complete"], true);
  EXPECT_LE(summary["scores"]["chrf"]["low"], summary["scores"]["chrf"]["value"]);
  EXPECT_GT(summary["stats"]["emitted"], 0);
}

TEST_F(EvalCommand, ABadItemIsNamedAndTheOthersAreDone) {
  std::string lines;
  for (int line = 1; line <= 20; ++line) {
    if (line == 17) {
      lines += "{\"en\": \"broken\", \n";
    } else if (line == 5) {
      lines += "{\"en\": \"without reference\"}\n";
    } else if (line == 9) {
      lines += "{\"en\": \"" + std::string(3000, 'x') + "\", \"de\": \"too long\"}\n";
    } else {
      lines += "{\"en\": \"a\", \"de\": \"b\"}\n";
    }
  }
  const std::string file = write("bad.jsonl", lines);
  const ProgramRun run = eval({"--task", task(), "--data", file, "--json"});
  EXPECT_EQ(run.status, 1);
  EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 3) << run.err;
  EXPECT_THAT(run.err, AllOf(HasSubstr("bad.jsonl, line 17: expected a JSON object, got malformed"),
                             HasSubstr("bad.jsonl, line 5: expected a text or a list of texts in "
                                       "\"de\", the reference, got no such field"),
                             HasSubstr("bad.jsonl, line 9: [generate] prompt: expected fewer")));
  const json summary = json::parse(run.out);
  EXPECT_EQ(summary["items"], 17);
  EXPECT_EQ(summary["failed"], 3);
  EXPECT_EQ(summary["complete"], false);
}

TEST_F(EvalCommand, GoesOnWithItsRecordsAndWithNoOthers) {
  const std::string whole = path("whole.jsonl");
  const Words common = {"--task", task(), "--data", items(), "--temperature", "1", "--out"};
  const auto with = [&](const std::string& out, Words more) {
    Words words = common;
    words.push_back(out);
    words.insert(words.end(), more.begin(), more.end());
    return eval(words);
  };
  ASSERT_EQ(with(whole, {}).status, 0);
  const std::string records = read(whole);
  ASSERT_EQ(std::count(records.begin(), records.end(), '\n'), 4);

  // As after a kill in the middle of the third record; then the same command.
  const std::string out = write("cut.jsonl", records.substr(0, records.size() - 40));
  const ProgramRun resumed = with(out, {});
  EXPECT_EQ(resumed.status, 0) << resumed.err;
  // The answers are the same; only times differ.
  const auto texts_of = [&](const std::string& file) {
    std::vector<json> texts;
    std::ifstream stream(file);
    for (std::string line; std::getline(stream, line);) {
      texts.push_back(json::parse(line).value("texts", json()));
    }
    return texts;
  };
  EXPECT_EQ(texts_of(out), texts_of(whole));

  const ProgramRun other = with(out, {"--top-k", "5"});
  EXPECT_EQ(other.status, 1);
  EXPECT_THAT(other.err, AllOf(HasSubstr("run.top_k 5"), HasSubstr("got those of another (0)"),
                               EndsWith("\n")));
  EXPECT_EQ(std::count(other.err.begin(), other.err.end(), '\n'), 1);
  EXPECT_THAT(other.out, IsEmpty());
  const ProgramRun data = with(items(), {});  // the items given as records
  EXPECT_THAT(data.err, HasSubstr("another file"));
  EXPECT_THAT(read(path("items.jsonl")), StartsWith("{\"en\": \"a cat\""));
}

TEST_F(EvalCommand, TakesTheFlagsOfGenerate) {
  const ProgramRun plain = eval({"--task", task(), "--data", items(), "--json"});
  const ProgramRun drafted = eval({"--task", task(), "--data", items(), "--json", "--draft",
                                   path("draft"), "--tree", "chain:length=3"});
  ASSERT_EQ(drafted.status, 0) << drafted.err;
  const json one = json::parse(plain.out);
  const json other = json::parse(drafted.out);
  EXPECT_EQ(one["scores"], other["scores"]);  // drafting changes no token
  EXPECT_GT(other["stats"]["drafted"], 0);
  EXPECT_LT(other["stats"]["target_passes"], one["stats"]["target_passes"]);
  const ProgramRun cascade = eval({"--task", task(), "--data", items(), "--json", "--draft",
                                   path("draft"), "--rule", "chow:alpha=1"});
  EXPECT_GT(json::parse(cascade.out)["stats"]["rule_tv"], 0);
  EXPECT_EQ(eval({"--task", task(), "--data", items(), "--rule", "show"}).status, 2);
}

TEST_F(EvalCommand, RefusesWhatItCannotDoInOneLine) {
  struct Sample {
    Words words;
    int status;
    const char* problem;
  };
  const std::string wrong = write("wrong.json", "{\"name\": \"x\"}");
  const Sample samples[] = {
      {{"eval"}, 2, "--model"},
      {{"eval", "--model", path("target")}, 2, "--task"},
      {{"eval", "--model", path("target"), "--task", "gsm8k"}, 2, "--data"},
      {{"eval", "--model", path("target"), "--task", "none", "--data", items()}, 2, "gsm8k"},
      {{"eval", "--model", path("target"), "--task", wrong, "--data", items()}, 1, "\"prompt\""},
      {{"eval", "--model", path("target"), "--task", task(), "--data", "/nowhere"}, 1, "No such"},
      {{"eval", "--model", "/nowhere", "--task", task(), "--data", items()}, 1, "/nowhere"},
      {{"eval", "--model", path("target"), "--task", task(), "--data", write("empty.jsonl", "")},
       1,
       "empty.jsonl: expected an item, got none"},
      {{"eval", "--model", path("target"), "--task", task(), "--data", items(), items()},
       2,
       "one file, got 2"}};
  for (const Sample& sample : samples) {
    const ProgramRun run = run_program(sample.words);
    EXPECT_EQ(run.status, sample.status) << run.err;
    EXPECT_THAT(run.err, HasSubstr(sample.problem));
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
    EXPECT_THAT(run.out, IsEmpty());
  }
}

TEST_F(EvalCommand, ListsTasksAndHelps) {
  const ProgramRun list = run_program({"eval", "--list"});
  EXPECT_EQ(list.status, 0);
  EXPECT_THAT(list.out, AllOf(HasSubstr("gsm8k\n"), HasSubstr("humaneval\n")));
  bool lists_gsm8k = false;
  for (const json& task : json::parse(run_program({"eval", "--list", "--json"}).out)) {
    lists_gsm8k = lists_gsm8k || (task["name"] == "gsm8k" && task["metric"].is_array() &&
                                  !task["description"].get<std::string>().empty());
  }
  EXPECT_TRUE(lists_gsm8k);
  EXPECT_EQ(run_program({"eval", "--list", "--limit", "3"}).status, 2);
  EXPECT_THAT(run_program({"eval", "--help"}).out, HasSubstr("Examples:\n"));
}

// If the requested folder does not exist, no other is used in its place.
TEST_F(EvalCommand, AFolderOfTasksMustBeOne) {
  const auto list_with = [](const std::string& folder) {
    return run_program({"-c", "OUTRIDER_TASKS='" + folder + "' '" OUTRIDER_PROGRAM "' eval --list"},
                       {.program = "/bin/sh"});
  };
  const ProgramRun refused = list_with("/nope");
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.out, IsEmpty());
  EXPECT_THAT(refused.err,
              HasSubstr("OUTRIDER_TASKS: expected a folder with task files, got /nope"));
  const TemporaryDirectory own;
  fs::copy_file(task(), own.path() / "toy.json");
  EXPECT_THAT(list_with(own.path().string()).out, HasSubstr("toy\n"));
}

// A compressed file given in place of JSON lines: a one-line message, however long the file is.
TEST_F(EvalCommand, AFileOfAnotherKindIsOneLine) {
  std::string rubbish;
  for (int line = 0; line < 500; ++line) rubbish += "no JSON\n";
  const std::string packed = write("items.jsonl.gz", "\x1f\x8b\x08" + rubbish);
  for (const std::string& file : {packed, write("rubbish.jsonl", rubbish)}) {
    const ProgramRun run = eval({"--task", task(), "--data", file, "--limit", "2"});
    EXPECT_EQ(run.status, 1);
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
    EXPECT_THAT(run.err, HasSubstr(file));
    EXPECT_THAT(run.out, IsEmpty());
  }
  // Garbage after a valid item is bounded, too.
  const std::string mixed = write("mixed.jsonl", "{\"en\": \"a\", \"de\": \"b\"}\n" + rubbish);
  const ProgramRun one = eval({"--task", task(), "--data", mixed, "--limit", "1"});
  EXPECT_EQ(one.status, 0) << one.err;
  const ProgramRun all = eval({"--task", task(), "--data", mixed});
  EXPECT_EQ(all.status, 1);
  EXPECT_EQ(std::count(all.err.begin(), all.err.end(), '\n'), 21) << all.err;
  EXPECT_THAT(all.err, HasSubstr("480 further items cannot be asked"));
}

TEST_F(EvalCommand, AnInterruptedSummarySaysThatItIsIncomplete) {
  std::string lines;
  for (int line = 0; line < 100000; ++line) lines += "{\"en\": \"a cat\", \"de\": \"eine\"}\n";
  const std::string file = write("many.jsonl", lines);
  // On a slow machine the first waits may end before the first answer.
  for (int wait = 1000; wait <= 32000; wait *= 2) {
    Words words = {"eval",   "--model", path("target"), "--threads", "1",
                   "--task", task(),    "--data",       file};
    const ProgramRun run = run_program(words, {.interrupt_after = std::chrono::milliseconds(wait)});
    ASSERT_EQ(run.status, 130) << run.err;
    if (run.out.empty() || run.out.starts_with("toy: 0 items")) continue;
    EXPECT_THAT(run.out, HasSubstr("incomplete: interrupted before the end of 100000 items\n"));
    return;
  }
  FAIL() << "interrupted before the first answer every time";
}

// Every shipped task, on the first items of its real data.
TEST_F(EvalCommand, ShippedTasksReadTheirData) {
  const fs::path data = fs::path(OUTRIDER_SHARED_DATA) / "eval";
  const fs::path model = fs::path(OUTRIDER_SHARED_DATA) / "models" / "stories260K";
  if (!fs::exists(data) || !fs::exists(model)) GTEST_SKIP() << "no " << data;
  const auto unpacked = [&](const char* packed, const char* name) {
    const std::string command =
        "gzip -dc '" + (data / packed).string() + "' > '" + path(name) + "'";
    EXPECT_EQ(std::system(command.c_str()), 0);
    return path(name);
  };
  const auto at = [&](const char* file) { return (data / file).string(); };
  const std::string english = unpacked("multi30k/test_2016_flickr.en.gz", "test.en");
  const std::string german = unpacked("multi30k/test_2016_flickr.de.gz", "test.de");
  struct Sample {
    const char* task;
    Words files;
  };
  const Sample samples[] = {
      {"multi30k-en-de", {english, german}},
      {"multi30k-de-en", {english, german}},
      {"wmt22-en-de",
       {at("wmt22/generaltest2022.en-de.src.en"), at("wmt22/generaltest2022.en-de.ref.A.de")}},
      {"wmt22-de-en",
       {at("wmt22/generaltest2022.de-en.src.de"), at("wmt22/generaltest2022.de-en.ref.A.en")}},
      {"gsm8k", {at("gsm8k/test.jsonl")}},
      {"mbpp", {at("mbpp/mbpp.jsonl")}},
      {"humaneval", {unpacked("humaneval/HumanEval.jsonl.gz", "HumanEval.jsonl")}},
      {"squad2", {at("squad2/dev-v2.0.json")}},
      {"webquestions", {at("webquestions/test.json")}},
      {"nq-open", {at("nq_open/NQ-open.dev.jsonl")}},
      {"spec-bench", {at("spec_bench/question.jsonl")}}};
  for (const Sample& sample : samples) {
    // Without the examples, because the story model's context is 512 tokens.
    Words words = {"eval",      "--task",     sample.task, "--model", model.string(),
                   "--threads", "1",          "--limit",   "2",       "--max-tokens",
                   "4",         "--examples", "0",         "--json",  "--allow-network",
                   "--data"};
    words.insert(words.end(), sample.files.begin(), sample.files.end());
    const ProgramRun run = run_program(words);
    EXPECT_THAT(run.err, Not(HasSubstr("[read item]"))) << sample.task;
    const json summary = json::parse(run.out);
    EXPECT_EQ(summary["items"].get<int>() + summary["failed"].get<int>(), 2) << run.err;
    // Some passages of SQuAD are longer than the story model's context.
    if (std::string_view(sample.task) != "squad2") {
      EXPECT_GE(summary["items"], 1) << sample.task << " " << run.err;
    }
  }
}

}  // namespace
}  // namespace outrider::test
