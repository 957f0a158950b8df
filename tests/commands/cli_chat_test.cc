// SPDX-License-Identifier: Apache-2.0
// `outrider chat`: a conversation over a pipe, and text that does not fit into one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tests/support/models/cli_models.h"
#include "tests/support/run_program.h"

namespace outrider::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

Words chat_words(const Words& more = {}) {
  Words words = {"chat", "--model", CliModels::get().chatty(), "--max-tokens", "8", "--ignore-eos"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST(Chat, AnswersEveryLineOfAPipeInItsTurn) {
  const ProgramRun one = run_program(chat_words(), {.standard_input = "hello\n"});
  EXPECT_EQ(one.status, 0) << one.err;
  EXPECT_FALSE(one.out.empty());
  const ProgramRun two = run_program(chat_words(), {.standard_input = "hello\n\nand\n"});
  EXPECT_EQ(two.status, 0) << two.err;
  EXPECT_THAT(two.out, StartsWith(one.out));
  EXPECT_GT(two.out.size(), one.out.size());
  // Forgetting makes the second answer equal the first. A last line without a newline works the
  // same.
  const ProgramRun reset = run_program(chat_words(), {.standard_input = "hello\n/reset\nhello"});
  EXPECT_EQ(reset.out, one.out + one.out);
  EXPECT_EQ(run_program(chat_words(), {.standard_input = "hello\n/exit\nhello\n"}).out, one.out);
}

// The answer to a message of several lines equals that of `generate --chat` to the same text.
TEST(Chat, AMessageMayHaveSeveralLines) {
  const auto answer_to = [](const std::string& message) {
    return run_program({"generate", "--chat", "--prompt", message, "--model",
                        CliModels::get().chatty(), "--max-tokens", "8", "--ignore-eos"})
        .out;
  };
  struct Case {
    const char* typed;
    const char* message;
  };
  for (const auto& [typed, message] : {
           Case{"\"\"\"one\ntwo\"\"\"\n", "one\ntwo"},
           Case{"\"\"\"\none\n\n  two\n\"\"\"\n", "one\n\n  two"},
           Case{"\"\"\"\n\none\n\n\"\"\"\n", "\none\n"},
           Case{"\"\"\"one\"\"\"\n", "one"},
           Case{"\"\"\"one\ntwo\"\"\" \t\r\n", "one\ntwo"},
           Case{"\"\"\"\n/exit\n\"\"\"\n", "/exit"},
           Case{"one \"\"\" two\n", "one \"\"\" two"},
       }) {
    const ProgramRun run = run_program(chat_words(), {.standard_input = typed});
    EXPECT_EQ(run.status, 0) << run.err;
    EXPECT_EQ(run.out, answer_to(message)) << typed;
  }
  const ProgramRun open = run_program(chat_words(), {.standard_input = "\"\"\"one\ntwo\n"});
  EXPECT_EQ(open.status, 1);
  EXPECT_THAT(open.out, IsEmpty());
  EXPECT_THAT(open.err,
              HasSubstr("expected \"\"\" at the end of its last line, got the end of the input"));
}

// The chatty model's vocabulary has no token for the mark. This test checks only that the flag
// reaches the tokenizer (src/engine/chats/guarded_chat_test.cc checks the ids).
TEST(Chat, MessagesMayBeGuarded) {
  const ProgramRun run =
      run_program(chat_words({"--safe-messages"}), {.standard_input = "hello\n"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.out, run_program(chat_words(), {.standard_input = "hello\n"}).out);
  const ProgramRun alone = run_program(
      {"generate", "--prompt", "hello", "--model", CliModels::get().chatty(), "--safe-messages"});
  EXPECT_EQ(alone.status, 2);
  EXPECT_THAT(alone.err, HasSubstr("--chat"));
}

TEST(Chat, TheFirstAnswerIsThatOfGenerateChat) {
  const ProgramRun chat = run_program(chat_words(), {.standard_input = "hello\n"});
  const ProgramRun once =
      run_program({"generate", "--chat", "--prompt", "hello", "--model", CliModels::get().chatty(),
                   "--max-tokens", "8", "--ignore-eos"});
  EXPECT_EQ(once.status, 0) << once.err;
  EXPECT_EQ(once.out, chat.out);
}

TEST(Chat, TheSystemMessageCounts) {
  const ProgramRun flag =
      run_program(chat_words({"--system", "be odd"}), {.standard_input = "hello\n"});
  const ProgramRun command =
      run_program(chat_words(), {.standard_input = "/system be odd\nhello\n"});
  const ProgramRun without = run_program(chat_words(), {.standard_input = "hello\n"});
  EXPECT_EQ(command.out, flag.out);
  EXPECT_NE(without.out, flag.out);
  // An empty system message is a message; without one the model's own applies, or none.
  const ProgramRun empty = run_program(chat_words({"--system", ""}), {.standard_input = "hello\n"});
  EXPECT_EQ(empty.status, 0) << empty.err;
  EXPECT_NE(empty.out, without.out);
  EXPECT_EQ(run_program(chat_words({"--system="}), {.standard_input = "hello\n"}).out, empty.out);
  EXPECT_EQ(run_program(chat_words({"--system", ""}), {.standard_input = "/system\nhello\n"}).out,
            without.out);
}

TEST(Chat, AFullContextForgetsTheOldestAndSaysSo) {
  std::string lines;
  for (int turn = 0; turn < 12; ++turn) lines += "turn " + std::to_string(turn) + " tell me\n";
  const ProgramRun run = run_program(chat_words(), {.standard_input = lines});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_GE(n_lines(run.out), 12);
  EXPECT_THAT(run.err, HasSubstr("forgotten"));
}

TEST(Chat, AMessageTooLongIsRefusedAndTheConversationGoesOn) {
  const std::string longer(5000, '~');
  const ProgramRun run = run_program(chat_words(), {.standard_input = longer + "\nhello\n"});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("context"));
  EXPECT_EQ(run.out, run_program(chat_words(), {.standard_input = "hello\n"}).out);
}

TEST(Chat, BytesThatAreNoTextAreRefusedAndTheConversationGoesOn) {
  const ProgramRun run =
      run_program(chat_words(), {.standard_input = "caf\xe9\n/system \xe9\nhello\n"});
  EXPECT_EQ(run.status, 1);
  const std::string line =
      "outrider: [read text] message: expected UTF-8 text, got byte 0xE9 in line 1\n";
  EXPECT_THAT(run.err, StartsWith(line + line));
  EXPECT_EQ(run.out, run_program(chat_words(), {.standard_input = "hello\n"}).out);
}

TEST(Chat, AMessageTooLongForgetsNothing) {
  const std::string longer(5000, '~');
  const ProgramRun with =
      run_program(chat_words(), {.standard_input = "hello\n" + longer + "\nhello\n"});
  EXPECT_EQ(with.status, 1);
  EXPECT_THAT(with.err, Not(HasSubstr("forgotten")));
  EXPECT_EQ(with.out, run_program(chat_words(), {.standard_input = "hello\nhello\n"}).out);
}

TEST(Chat, ToolsReachTheTemplate) {
  const std::string tools = (CliModels::get().root() / "tools.json").string();
  std::ofstream(tools) << R"([{"name": "look_up"}])";
  const ProgramRun called = run_program(chat_words({"--tools", tools}), {.standard_input = "hi\n"});
  EXPECT_EQ(called.status, 1);
  EXPECT_THAT(called.err, HasSubstr("may call look_up"));
  Words once = {"generate", "--chat", "--prompt", "hi", "--model", CliModels::get().chatty()};
  EXPECT_EQ(run_program(once).status, 0);
  once.insert(once.end(), {"--tools", tools});
  EXPECT_THAT(run_program(once).err, HasSubstr("may call look_up"));
  EXPECT_THAT(run_program({"generate", "--prompt", "hi", "--model", CliModels::get().chatty(),
                           "--tools", tools})
                  .err,
              HasSubstr("--tools requires --chat"));
  // Tools that are no list are refused before the model is loaded.
  std::ofstream(tools) << R"({"name": "look_up"})";
  EXPECT_THAT(run_program({"chat", "--model", "nowhere", "--tools", tools}).err,
              HasSubstr("tools: expected a JSON array"));
}

TEST(Chat, SaysWhatAFunctionReturned) {
  const ProgramRun run =
      run_program(chat_words(), {.standard_input = "hi\n/tool 21 degrees\n/tool\nhi\n"});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("returned 21 degrees"));
  EXPECT_THAT(run.err, HasSubstr("/tool: expected what the function returned, got nothing"));
  // Neither is part of the conversation.
  EXPECT_EQ(run.out, run_program(chat_words(), {.standard_input = "hi\nhi\n"}).out);
}

// A turn that continues the conversation gives the same answer as a run over all of it.
TEST(Chat, TurnsSayWhatTheWholeConversationWould) {
  const std::string first = run_program(chat_words(), {.standard_input = "hello\n"}).out;
  const std::string both = run_program(chat_words(), {.standard_input = "hello\nand\n"}).out;
  const std::string drafted =
      run_program(chat_words({"--drafter", "suffix"}), {.standard_input = "hello\nand\n"}).out;
  EXPECT_GT(both.size(), first.size());
  EXPECT_EQ(drafted, both);
}

TEST(Chat, UnknownCommandsAreNotSent) {
  const ProgramRun run = run_program(chat_words(), {.standard_input = "/frob\n"});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.out, IsEmpty());
  EXPECT_THAT(run.err, HasSubstr("/frob"));
  EXPECT_EQ(run_program(chat_words(), {.standard_input = "//frob\n"}).status, 0);
}

}  // namespace
}  // namespace outrider::test
