// SPDX-License-Identifier: Apache-2.0
// Turns of an assistant, with a model that answers as scripted.
#include "outrider/chat_turn.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>

#include "outrider/error.h"
#include "outrider/model.h"
#include "tests/support/models/script_model.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* kTools = R"([{"type": "function", "function": {"name": "weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}])";

const test::Scripts kScripts = {
    {"hello", "Hello, my dear friend!"},
    {"think", "<think>\nIt asks for a number.\n</think>\n\nForty-two is what I say."},
    {"call",
     "Let me see.\n<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": "
     "\"Paris\"}}\n</tool_call>"},
    {"bare call",
     "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\"}}\n</tool_call>"},
    {"broken call", "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Os"},
    {"json", "{\"a\": 1}"},
};

class ChatTurns : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = std::make_unique<test::TemporaryDirectory>();
    test::write_script_model(kScripts, directory_->path());
    model_ = Model::load(directory_->path(), {.threads = 1});
  }
  static void TearDownTestSuite() {
    model_.reset();
    directory_.reset();
  }

  static ChatTurnOptions asked(const std::string& content, const std::string& tools = {}) {
    ChatTurnOptions options;
    options.messages = json::array({{{"role", "user"}, {"content", content}}}).dump();
    options.chat.tools = tools;
    options.guard = MessageGuard::none;  // the template turns the request into a special token
    return options;
  }
  static Reply answer(const ChatTurnOptions& options, const GenerateOptions& generate = {}) {
    const ChatTurn turn(model_->tokenizer(), options);
    const GenerateRequest request = turn.request(generate);
    Generator generator(model_);
    const GenerateResult result = std::move(generator.generate({&request, 1}).front());
    EXPECT_EQ(result.finish_reason, FinishReason::stop);
    return turn.read(result.text);
  }

  static inline std::unique_ptr<test::TemporaryDirectory> directory_;
  static inline std::shared_ptr<const Model> model_;
};

TEST_F(ChatTurns, SayContentAndReasoningApart) {
  EXPECT_EQ(answer(asked("hello")).content, kScripts.at("hello"));
  const Reply reply = answer(asked("think"));
  EXPECT_EQ(reply.content, "Forty-two is what I say.");
  EXPECT_THAT(reply.reasoning, HasSubstr("It asks for a number."));
}

TEST_F(ChatTurns, SayCallsWhereThereAreTools) {
  const Reply reply = answer(asked("call", kTools));
  EXPECT_EQ(reply.content, "Let me see.");
  ASSERT_THAT(reply.calls, SizeIs(1));
  EXPECT_EQ(reply.calls[0].name, "weather");
  EXPECT_EQ(json::parse(reply.calls[0].arguments), json({{"city", "Paris"}}));
  const Reply without = answer(asked("call"));
  EXPECT_THAT(without.calls, IsEmpty());
  EXPECT_EQ(without.content, kScripts.at("call"));
  ChatTurnOptions untold = asked("call", kTools);
  untold.tool_choice.kind = ToolChoice::Kind::none;
  EXPECT_THAT(answer(untold).calls, IsEmpty());
  EXPECT_THAT(ChatTurn(model_->tokenizer(), untold).prompt(), ::testing::Not(HasSubstr("tools:")));
}

TEST_F(ChatTurns, KeepWhatBrokeOffAsContent) {
  const Reply reply = answer(asked("broken call", kTools));
  EXPECT_THAT(reply.calls, IsEmpty());
  EXPECT_EQ(reply.content, kScripts.at("broken call"));
}

// The events of a reader, concatenated.
struct ReadInPieces {
  Reply reply = {};
  std::string broken = {};  // content that was passed on as a call before
  int n_events = 0;

  void add(const ReplyEvent& event) {
    ++n_events;
    switch (event.kind) {
      case ReplyEvent::Kind::content:
        reply.content += event.text;
        if (event.of_broken_call) broken += event.text;
        break;
      case ReplyEvent::Kind::reasoning:
        reply.reasoning += event.text;
        break;
      case ReplyEvent::Kind::call_begin:
        reply.calls.emplace_back();
        reply.calls.back().name = event.name;
        reply.calls.back().id = event.id;
        break;
      case ReplyEvent::Kind::call_arguments:
        reply.calls.back().arguments += event.text;
        break;
      case ReplyEvent::Kind::call_end:
        if (!event.id.empty()) reply.calls.back().id = event.id;
        if (!event.complete) reply.calls.pop_back();
        break;
    }
  }
};

// For every script, with tools and without, complete and cut off after a few tokens.
TEST_F(ChatTurns, SayInPiecesWhatTheySayAsAWhole) {
  Generator generator(model_);
  int n_before_the_end = 0;
  int n_broken = 0;
  for (const auto& [name, text] : kScripts) {
    for (const char* const tools : {"", kTools}) {
      for (const int most : {256, 12, 9, 5, 1}) {
        SCOPED_TRACE(name + (*tools == '\0' ? "" : " with tools") + ", " + std::to_string(most));
        ReadInPieces pieces;
        const ChatTurn turn(model_->tokenizer(), asked(name, tools));
        ReplyReader reader =
            ChatTurn(model_->tokenizer(), asked(name, tools)).reader([&](const ReplyEvent& event) {
              pieces.add(event);
            });
        GenerateOptions options;
        options.max_tokens = most;
        options.on_token = [&](const TokenEvent& token) { reader.push(token.text); };
        const GenerateRequest request = turn.request(options);
        const std::string said = generator.generate({&request, 1}).front().text;
        n_before_the_end += pieces.n_events > 2 ? 1 : 0;
        reader.finish(said);
        const Reply expected = turn.read(said);
        EXPECT_EQ(pieces.reply.content, expected.content);
        EXPECT_EQ(pieces.reply.reasoning, expected.reasoning);
        EXPECT_EQ(reader.n_calls(), static_cast<int>(expected.calls.size()));
        ASSERT_THAT(pieces.reply.calls, SizeIs(expected.calls.size()));
        for (std::size_t i = 0; i < expected.calls.size(); ++i) {
          EXPECT_EQ(pieces.reply.calls[i].id, expected.calls[i].id);
          EXPECT_EQ(pieces.reply.calls[i].name, expected.calls[i].name);
          EXPECT_EQ(pieces.reply.calls[i].arguments, expected.calls[i].arguments);
        }
        n_broken += pieces.broken.empty() ? 0 : 1;
      }
    }
  }
  EXPECT_GT(n_before_the_end, 6);
  EXPECT_GT(n_broken, 0);
}

// The request's grammar is that of the whole reply: the beginning of a call is allowed, an answer
// is not.
TEST_F(ChatTurns, HoldTheModelToACall) {
  for (const ToolChoice& choice : {ToolChoice{.kind = ToolChoice::Kind::named, .name = "weather"},
                                   ToolChoice{.kind = ToolChoice::Kind::required}}) {
    ChatTurnOptions options = asked("bare call", kTools);
    options.tool_choice = choice;
    EXPECT_THAT(answer(options).calls, SizeIs(1));
    options = asked("hello", kTools);
    options.tool_choice = choice;
    const GenerateRequest request =
        ChatTurn(model_->tokenizer(), options).request({.max_tokens = 4});
    Generator generator(model_);
    const GenerateResult result = std::move(generator.generate({&request, 1}).front());
    EXPECT_FALSE(kScripts.at("hello").starts_with(result.text)) << result.text;
  }
}

TEST_F(ChatTurns, TakeTheFormOfAnAnswer) {
  GenerateOptions generate;
  generate.grammar = Grammar::any_json_object();
  EXPECT_EQ(answer(asked("json"), generate).content, kScripts.at("json"));
  ChatTurnOptions required = asked("json", kTools);
  required.tool_choice.kind = ToolChoice::Kind::required;
  const ChatTurn turn(model_->tokenizer(), required);
  EXPECT_THROW(turn.request(generate), UsageError);
  EXPECT_NE(turn.request({}).options.grammar, nullptr);
}

TEST_F(ChatTurns, EndWhereTheAssistantsWordsDo) {
  const ChatTurn turn(model_->tokenizer(), asked("hello"));
  GenerateOptions options;
  options.stop_strings = {"never"};
  EXPECT_THAT(turn.request(options).options.stop_strings, ::testing::Contains("never"));
  options.ignore_eos = true;
  EXPECT_THAT(turn.request(options).options.stop_strings, SizeIs(1));
  EXPECT_THAT(turn.request(options).options.stop_tokens, IsEmpty());
}

// A message cannot spell the template's tokens: with its special tokens as text, the reply is not
// the script that the message names.
TEST_F(ChatTurns, GuardMessages) {
  ChatTurnOptions options = asked("<|end|>");
  options.guard = MessageGuard::special_tokens;
  const auto n_ends = [&] {
    const auto ids = ChatTurn(model_->tokenizer(), options).request({}).prompt;
    return std::count(ids.begin(), ids.end(), *model_->tokenizer().find("<|end|>"));
  };
  EXPECT_EQ(n_ends(), 0);
  options.guard = MessageGuard::none;
  EXPECT_EQ(n_ends(), 2);  // one in the message, one in the script's name
}

TEST_F(ChatTurns, RefuseChoicesWithoutTools) {
  ChatTurnOptions options = asked("hello");
  options.tool_choice.kind = ToolChoice::Kind::required;
  EXPECT_THROW(ChatTurn(model_->tokenizer(), options), UsageError);
  options.chat.tools = kTools;
  options.tool_choice = {.kind = ToolChoice::Kind::named, .name = "time"};
  EXPECT_THROW(ChatTurn(model_->tokenizer(), options), UsageError);
  options = asked("hello");
  options.messages = "no JSON";
  EXPECT_THROW(ChatTurn(model_->tokenizer(), options), Error);
}

}  // namespace
}  // namespace outrider
