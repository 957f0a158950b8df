// SPDX-License-Identifier: Apache-2.0
// Heads as their users train them: the target's own answers, a head trained on them, and drafts by
// that head.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/models/tiny_model.h"
#include "tests/support/run_program.h"
#include "tests/support/temporary_directory.h"

namespace outrider::test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;
using Json = nlohmann::json;

class TrainHeads : public ::testing::Test {
 protected:
  TrainHeads() {
    write_hugging_face(make_tiny_model(TinyShape{}), root_.path() / "target");
    std::ofstream prompts(root_.path() / "prompts.jsonl");
    for (int i = 0; i < 9; ++i) {
      prompts << Json{{"question_id", i}, {"turns", {std::string("The ") + char('a' + i)}}} << "\n";
    }
  }
  std::string at(const std::string& name) const { return (root_.path() / name).string(); }

  ProgramRun answers(const std::string& out, const Words& more = {}) const {
    Words words = {"train",     "answers",
                   "--model",   at("target"),
                   "--prompts", at("prompts.jsonl"),
                   "--raw",     "--max-tokens",
                   "14",        "--ignore-eos",
                   "--threads", "1",
                   "--batch",   "4",
                   "--out",     at(out)};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(words);
  }
  std::vector<Json> lines_of(const std::string& name) const {
    std::vector<Json> lines;
    std::ifstream file(at(name));
    for (std::string line; std::getline(file, line);) lines.push_back(Json::parse(line));
    return lines;
  }
  ProgramRun generate(const std::string& prompt, const Words& more) const {
    Words words = {"generate", "--model",      at("target"), "--prompt", prompt,  "--max-tokens",
                   "14",       "--ignore-eos", "--threads",  "1",        "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(words);
  }

  TemporaryDirectory root_;
};

TEST_F(TrainHeads, AnswersAreWhatTheTargetSays) {
  const ProgramRun run = answers("answers.jsonl");
  ASSERT_EQ(run.status, 0) << run.err;
  const std::vector<Json> lines = lines_of("answers.jsonl");
  ASSERT_EQ(lines.size(), 9U);
  std::set<std::string> ids;
  for (const Json& line : lines) {
    ids.insert(line.at("id"));
    const std::string id = line.at("id");
    const std::string prompt = std::string("The ") + char('a' + id.back() - '0');
    EXPECT_THAT(line.at("prompt").get<std::string>(), HasSubstr(prompt));
    const ProgramRun alone = generate(prompt, {});
    ASSERT_EQ(alone.status, 0) << alone.err;
    EXPECT_EQ(line.at("completion_tokens"), Json::parse(alone.out).at("ids"));
    EXPECT_EQ(line.at("completion"), Json::parse(alone.out).at("text"));
  }
  EXPECT_EQ(ids.size(), 9U);
}

TEST_F(TrainHeads, AnswersGoOnWhereTheyWereLeft) {
  ASSERT_EQ(answers("whole.jsonl").status, 0);
  std::ifstream whole(at("whole.jsonl"));
  std::string line;
  std::string begun;
  for (int i = 0; i < 3 && std::getline(whole, line); ++i) begun += line + "\n";
  std::getline(whole, line);
  // As after a kill in the middle of a line.
  std::ofstream(at("left.jsonl")) << begun << line.substr(0, line.size() / 2);
  const ProgramRun refused = answers("left.jsonl");
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err, HasSubstr("--resume"));
  ASSERT_EQ(answers("left.jsonl", {"--resume"}).status, 0);
  const auto sorted = [&](const std::string& name) {
    std::vector<Json> lines = lines_of(name);
    std::sort(lines.begin(), lines.end(),
              [](const Json& a, const Json& b) { return a.at("id") < b.at("id"); });
    return lines;
  };
  EXPECT_EQ(sorted("left.jsonl"), sorted("whole.jsonl"));
  std::ofstream(at("other.jsonl")) << "{\"prompt\": \"a\"}\n";
  const ProgramRun other = answers("other.jsonl", {"--resume"});
  EXPECT_EQ(other.status, 1);
  EXPECT_EQ(std::count(other.err.begin(), other.err.end(), '\n'), 1) << other.err;
  EXPECT_NE(answers("target/config.json", {"--resume"}).status, 0);
}

// After a user's message this template adds "e", which a random model reaches by itself.
class OwnPrompts : public TrainHeads {
 protected:
  OwnPrompts() {
    const Json config = {{"chat_template",
                          "{% for message in messages %}{{ message['role'] + ': ' + "
                          "message['content'] + 'e\n' }}{% endfor %}{{ 'assistant: ' }}"}};
    std::ofstream(fs::path(at("target")) / "tokenizer_config.json") << config.dump();
  }
  ProgramRun chat_answers(const std::string& out, const Words& more) const {
    Words words = {"train",        "answers",   "--model", at("target"), "--max-tokens", "8",
                   "--ignore-eos", "--threads", "1",       "--out",      at(out)};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(words);
  }
  // Keyed by id: the file has them in the order in which they ended.
  std::map<std::string, Json> by_id(const std::string& name) const {
    std::map<std::string, Json> lines;
    for (const Json& line : lines_of(name)) lines[line.at("id")] = line;
    return lines;
  }
};

TEST_F(OwnPrompts, AreWhatTheModelSaysForItsUser) {
  const ProgramRun run = chat_answers("own.jsonl", {"--own-prompts", "24"});
  ASSERT_EQ(run.status, 0) << run.err;
  const std::map<std::string, Json> own = by_id("own.jsonl");
  ASSERT_GT(own.size(), 1U) << run.err;
  ASSERT_LT(own.size(), 24U) << "none without an end: nothing to pass over";
  EXPECT_THAT(run.err, HasSubstr("without " + std::to_string(24 - own.size()) + " prompts"));
  std::set<std::string> said;
  std::ofstream prompts(at("said.jsonl"));
  std::vector<std::string> ids;
  for (const auto& [id, line] : own) {
    const std::string prompt = line.at("prompt");
    const std::size_t begin = prompt.find("user: ");
    const std::size_t end = prompt.find("e\nassistant: ");
    ASSERT_NE(begin, std::string::npos) << prompt;
    ASSERT_NE(end, std::string::npos) << prompt;
    const std::string words = prompt.substr(begin + 6, end - begin - 6);
    EXPECT_EQ(words.find('e'), std::string::npos) << words;
    EXPECT_FALSE(words.empty());
    said.insert(words);
    ids.push_back(id);
    prompts << Json{{"turns", {words}}} << "\n";
  }
  prompts.close();
  EXPECT_EQ(said.size(), own.size());

  // An answer equals the one that a user who wrote that message would get.
  ASSERT_EQ(chat_answers("answers.jsonl", {"--prompts", at("said.jsonl")}).status, 0);
  const std::vector<Json> answers = lines_of("answers.jsonl");
  ASSERT_EQ(answers.size(), own.size());
  for (const Json& answer : answers) {
    EXPECT_EQ(std::count_if(
                  own.begin(), own.end(),
                  [&](const auto& line) {
                    return line.second.at("prompt_tokens") == answer.at("prompt_tokens") &&
                           line.second.at("completion_tokens") == answer.at("completion_tokens");
                  }),
              1);
  }
}

TEST_F(OwnPrompts, GoOnWhereTheyWereLeftAndAreAskedOnce) {
  ASSERT_EQ(chat_answers("whole.jsonl", {"--own-prompts", "24"}).status, 0);
  const std::map<std::string, Json> whole = by_id("whole.jsonl");
  ASSERT_GT(whole.size(), 1U);
  std::ofstream left(at("left.jsonl"));
  left << whole.begin()->second << "\n";
  left.close();
  ASSERT_EQ(chat_answers("left.jsonl", {"--own-prompts", "24", "--resume"}).status, 0);
  EXPECT_EQ(by_id("left.jsonl"), whole);

  std::ofstream others(at("others.jsonl"));
  for (auto [id, line] : whole) {
    line["id"] = "another/" + id;
    others << line << "\n";
  }
  others.close();
  ASSERT_EQ(chat_answers("others.jsonl", {"--own-prompts", "24", "--resume"}).status, 0);
  EXPECT_EQ(lines_of("others.jsonl").size(), whole.size());
}

TEST_F(OwnPrompts, WantAChat) {
  const ProgramRun raw = chat_answers("raw.jsonl", {"--own-prompts", "2", "--raw"});
  EXPECT_EQ(raw.status, 2) << raw.err;
  const ProgramRun none = chat_answers("none.jsonl", {});
  EXPECT_EQ(none.status, 2) << none.err;
  EXPECT_THAT(none.err, HasSubstr("--own-prompts"));
  EXPECT_FALSE(fs::exists(at("none.jsonl")));
}

TEST_F(TrainHeads, BlockHeadsLearnFromAnswersAndDraft) {
  if (!fs::exists(fs::path(OUTRIDER_PROGRAM).parent_path() / "outrider-train")) {
    GTEST_SKIP() << "built without libtorch: no outrider-train";
  }
  ASSERT_EQ(answers("answers.jsonl").status, 0);
  for (const std::string kind : {"dflash", "dspark"}) {
    SCOPED_TRACE(kind);
    const auto train = [&](const Words& more) {
      Words words = {"train",
                     kind,
                     "--target",
                     at("target"),
                     "--examples",
                     at("answers.jsonl"),
                     "--held-out-examples",
                     at("answers.jsonl"),
                     "--layers",
                     "1",
                     "--block",
                     "4",
                     "--anchors",
                     "4",
                     "--steps",
                     "6",
                     "--batch",
                     "2",
                     "--length",
                     "16",
                     "--threads",
                     "1",
                     "--checkpoint-every",
                     "3",
                     "--out",
                     at(kind)};
      if (kind == "dspark") words.insert(words.end(), {"--rank", "4"});
      words.insert(words.end(), more.begin(), more.end());
      return run_program(words);
    };
    const ProgramRun run = train({});
    ASSERT_EQ(run.status, 0) << run.err;
    EXPECT_THAT(run.err, HasSubstr("stored they would take"));
    std::ifstream log(at(kind) + "/training/log.jsonl");
    const std::string logged{std::istreambuf_iterator<char>(log), {}};
    EXPECT_THAT(logged, HasSubstr("held_out_accepted_0"));
    EXPECT_THAT(logged, HasSubstr("held_out_accepted_1"));
    EXPECT_EQ(train({"--resume"}).status, 0);
    const ProgramRun other = train({"--resume", "--gamma", "3"});
    EXPECT_EQ(other.status, 1);
    EXPECT_THAT(other.err, HasSubstr("gamma"));
    const ProgramRun drafted =
        generate("The a", {"--drafter", kind + ":" + at(kind), "--tree", "own"});
    ASSERT_EQ(drafted.status, 0) << drafted.err;
    const Json result = Json::parse(drafted.out);
    EXPECT_EQ(result.at("ids"), Json::parse(generate("The a", {}).out).at("ids"));
    EXPECT_GT(result.at("stats").at("drafted"), 0);

    const auto expect_refused = [&](const Words& more, const std::string& what) {
      const ProgramRun refused = train(more);
      EXPECT_EQ(refused.status, 2) << refused.err;
      EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused.err;
      EXPECT_THAT(refused.err, HasSubstr(what));
    };
    expect_refused({"--text", at("prompts.jsonl")}, "either --text or --examples");
    expect_refused({"--data", "generated"}, "fixed with examples");
    expect_refused({"--mask-token", "100000"}, "mask-token");
    expect_refused({"--block", "65"}, "block");
  }
}

TEST_F(TrainHeads, AModelLearnsToDraftInOnePass) {
  if (!fs::exists(fs::path(OUTRIDER_PROGRAM).parent_path() / "outrider-train")) {
    GTEST_SKIP() << "built without libtorch: no outrider-train";
  }
  ASSERT_EQ(answers("answers.jsonl").status, 0);
  const auto train = [&](const Words& more) {
    Words words = {"train",
                   "pard",
                   "--drafter",
                   at("target"),
                   "--tokens",
                   "4",
                   "--steps",
                   "6",
                   "--batch",
                   "2",
                   "--length",
                   "16",
                   "--threads",
                   "1",
                   "--checkpoint-every",
                   "3",
                   "--out",
                   at("pard"),
                   "--examples",
                   at("answers.jsonl"),
                   "--held-out-examples",
                   at("answers.jsonl")};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(words);
  };
  const ProgramRun run = train({});
  ASSERT_EQ(run.status, 0) << run.err;
  std::ifstream log(at("pard") + "/training/log.jsonl");
  const std::string logged{std::istreambuf_iterator<char>(log), {}};
  EXPECT_THAT(logged, HasSubstr("held_out_accepted"));
  EXPECT_EQ(train({"--resume"}).status, 0);
  const ProgramRun other = train({"--resume", "--keep", "0.5"});
  EXPECT_EQ(other.status, 1);
  EXPECT_THAT(other.err, HasSubstr("keep"));
  const ProgramRun drafted =
      generate("The a", {"--drafter", "pard:" + at("pard"), "--tree", "own"});
  ASSERT_EQ(drafted.status, 0) << drafted.err;
  const Json result = Json::parse(drafted.out);
  EXPECT_EQ(result.at("ids"), Json::parse(generate("The a", {}).out).at("ids"));
  EXPECT_GT(result.at("stats").at("drafted"), 0);

  const auto expect_refused = [&](const Words& more, const std::string& what) {
    const ProgramRun refused = train(more);
    EXPECT_EQ(refused.status, 2) << refused.err;
    EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused.err;
    EXPECT_THAT(refused.err, HasSubstr(what));
  };
  expect_refused({"--text", at("prompts.jsonl")}, "either --text or --examples");
  expect_refused({"--mask-token", "100000"}, "mask-token");
  expect_refused({"--keep", "0"}, "keep");
}

}  // namespace
}  // namespace outrider::test
