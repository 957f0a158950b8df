// SPDX-License-Identifier: Apache-2.0
// --trace of `generate`, `chat` and `serve`: the file, and that the flag changes no other output.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "tests/support/models/cli_models.h"
#include "tests/support/run_program.h"

namespace outrider::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Words drafted_words(const Words& more) {
  Words words = {"generate",
                 "--model",
                 CliModels::get().target(),
                 "--draft",
                 CliModels::get().draft(),
                 "--prompt",
                 "ab",
                 "--max-tokens",
                 "20",
                 "--ignore-eos",
                 "--json"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// Names of the texts' tracks.
std::set<std::string> texts_of(const json& events) {
  std::set<std::string> names;
  for (const json& event : events) {
    if (event["ph"] != "M" || event["name"] != "thread_name") continue;
    const std::string name = event["args"]["name"];
    if (name.starts_with("text ")) names.insert(name);
  }
  return names;
}

TEST(Trace, HasTheRoundsOfAText) {
  const std::string file = (CliModels::get().root() / "trace.json").string();
  std::ofstream(file) << std::string(100000, 'x');  // an earlier and longer file
  const ProgramRun run = run_program(drafted_words({"--trace", file}));
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.err, IsEmpty());
  const json result = json::parse(run.out);
  EXPECT_EQ(result["ids"], json::parse(run_program(drafted_words({})).out)["ids"]);

  const json events = json::parse(std::ifstream(file));
  EXPECT_EQ(texts_of(events), std::set<std::string>{"text 0"});
  int n_rounds = 0;
  int n_accepted = 0;
  std::set<std::string> names;
  for (const json& event : events) {
    if (event.contains("name")) names.insert(event["name"].get<std::string>());
    if (event["ph"] != "X" || !event["args"].contains("emitted")) continue;
    ++n_rounds;
    n_accepted += event["args"]["accepted"].get<int>();
  }
  EXPECT_EQ(n_rounds, result["stats"]["target_passes"].get<int>());
  EXPECT_EQ(n_accepted, result["stats"]["accepted"].get<int>());
  for (const char* name :
       {"plan", "draft model", "target pass", "verify", "commit", "queue", "prefill", "decode"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

// A server, one request, and SIGTERM: $0 is the program, then target, drafter and trace file.
constexpr const char* kServeOnce = R"SH(
set -e
log=$(mktemp)
"$0" serve --model "$1" --draft "$2" --port 0 --profile none --trace "$3" 2>"$log" &
for _ in $(seq 300); do
  port=$(sed -n 's#.*http://127.0.0.1:\([0-9]*\).*#\1#p' "$log")
  [ -z "$port" ] || break
  sleep 0.1
done
body='{"prompt": "ab", "max_tokens": 20, "ignore_eos": true, "temperature": 0,
  "speculation": {"tree": "chain:length=3", "adaptive": false}}'
exec 3<>"/dev/tcp/127.0.0.1/$port"
printf 'POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n' >&3
printf 'Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s' ${#body} "$body" >&3
sed -n 's#.*\("completion_tokens": *[0-9]*\).*#{\1}#p' <&3
kill -TERM %1
wait %1
rm "$log"
)SH";

TEST(Trace, HasTheRoundsOfAServersTexts) {
  const std::string file = (CliModels::get().root() / "serve_trace.json").string();
  const ProgramRun run = run_program({"-c", kServeOnce, OUTRIDER_PROGRAM, CliModels::get().target(),
                                      CliModels::get().draft(), file},
                                     {.program = "/bin/bash"});
  ASSERT_EQ(run.status, 0) << run.err;
  const json answer = json::parse(run.out);
  const json events = json::parse(std::ifstream(file));
  EXPECT_EQ(texts_of(events).size(), 1U);
  int n_emitted = 0;
  int n_drafted = 0;
  for (const json& event : events) {
    if (event["ph"] != "X" || !event["args"].contains("emitted")) continue;
    n_emitted += event["args"]["emitted"].get<int>();
    n_drafted += event["args"]["drafted"].get<int>();
  }
  EXPECT_EQ(n_emitted, answer["completion_tokens"].get<int>());
  EXPECT_EQ(n_emitted, 20);
  EXPECT_GT(n_drafted, 0);
}

TEST(Trace, HasATrackForEachAnswerOfAConversation) {
  const std::string file = (CliModels::get().root() / "chat_trace.json").string();
  const Words words = {"chat",         "--model", CliModels::get().chatty(),
                       "--max-tokens", "8",       "--ignore-eos"};
  Words traced = words;
  traced.insert(traced.end(), {"--trace", file});
  const ProgramRun run = run_program(traced, {.standard_input = "hello\nand\n"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.out, run_program(words, {.standard_input = "hello\nand\n"}).out);
  EXPECT_EQ(texts_of(json::parse(std::ifstream(file))),
            (std::set<std::string>{"text 0", "text 1"}));
}

TEST(Trace, AFullDiskIsSaidOnceAndEndsNothing) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  const ProgramRun run = run_program(drafted_words({"--trace", "/dev/full"}));
  EXPECT_EQ(run.status, 0);
  EXPECT_EQ(n_lines(run.err), 1) << run.err;
  EXPECT_THAT(run.err, HasSubstr("[write trace] /dev/full: No space left"));
  EXPECT_THAT(run.err, HasSubstr("; nothing more is traced"));
  EXPECT_EQ(json::parse(run.out)["ids"], json::parse(run_program(drafted_words({})).out)["ids"]);
  const ProgramRun chat = run_program(
      {"chat", "--model", CliModels::get().chatty(), "--max-tokens", "4", "--trace", "/dev/full"},
      {.standard_input = "hello\nand\n"});
  EXPECT_EQ(chat.status, 0);
  const std::string once = "nothing more is traced";
  EXPECT_EQ(chat.err.find(once), chat.err.rfind(once));
  EXPECT_THAT(chat.err, HasSubstr(once));
}

// Before any model is loaded; an existing file stays.
TEST(Trace, APlaceThatCannotBeWrittenIsRefused) {
  const std::string model = CliModels::get().target();
  const std::string nowhere = (CliModels::get().root() / "nowhere" / "f").string();
  for (const Words& words :
       {Words{"generate", "--model", model, "--prompt", "a"},
        Words{"chat", "--model", CliModels::get().chatty()}, Words{"serve", "--model", model}}) {
    SCOPED_TRACE(words.front());
    const auto refused = [&words](const std::string& file, const std::string& message) {
      Words traced = words;
      traced.insert(traced.end(), {"--trace", file});
      expect_refused(run_program(traced), 1, message);
    };
    refused(nowhere, "[write trace]");
    refused(model, "Is a directory");
    refused(words[2] + "/config.json", "another file than those that are read");
  }
  const fs::path file = CliModels::get().root() / "earlier.json";
  std::ofstream(file) << "earlier";
  EXPECT_EQ(run_program({"generate", "--model", model, "--prompt", "a", "--tree", "bush", "--trace",
                         file.string()})
                .status,
            2);
  EXPECT_EQ(fs::file_size(file), 7U);
}

}  // namespace
}  // namespace outrider::test
