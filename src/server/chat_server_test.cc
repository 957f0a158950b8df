// SPDX-License-Identifier: Apache-2.0
// Chats over HTTP with a scripted model: content, reasoning and tool calls, whole and streamed, in
// each interface.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/models/served_models.h"
#include "tests/support/running_http_server.h"

namespace outrider::server {
namespace {

using nlohmann::json;
using test::becomes_true;
using test::HttpAnswer;
using test::HttpClient;
using test::RunningServer;
using test::ServedModels;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const json kTools = json::parse(R"([
  {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}},
  {"type": "function", "function": {"name": "time", "parameters": {"type": "object"}}}])");

json question(const std::string& script) {
  return {{"model", "tiny"}, {"messages", {{{"role", "user"}, {"content", script}}}}};
}

json with(json body, const json& more) {
  body.update(more);
  return body;
}

// Joins streamed chat chunks as clients do.
json assembled(const std::vector<json>& chunks) {
  json message = {{"role", ""}, {"content", ""}, {"reasoning_content", ""}};
  json reason;
  for (const json& chunk : chunks) {
    EXPECT_EQ(chunk.at("object"), "chat.completion.chunk");
    EXPECT_EQ(chunk.at("id"), chunks.front().at("id"));
    for (const json& choice : chunk.at("choices")) {
      const json& delta = choice.at("delta");
      EXPECT_TRUE(reason.is_null()) << "something behind the end";
      if (delta.contains("role")) message["role"] = delta["role"];
      for (const char* const name : {"content", "reasoning_content"}) {
        if (!delta.contains(name) || delta[name].is_null()) continue;
        message[name] = message[name].get<std::string>() + delta[name].get<std::string>();
      }
      for (const json& call : delta.value("tool_calls", json::array())) {
        const auto index = call.at("index").get<std::size_t>();
        if (message["tool_calls"].size() <= index) {
          EXPECT_EQ(message["tool_calls"].size(), index);
          message["tool_calls"].push_back(call);
          continue;
        }
        json& arguments = message["tool_calls"][index]["function"]["arguments"];
        arguments =
            arguments.get<std::string>() + call.at("function").at("arguments").get<std::string>();
      }
      if (!choice.at("finish_reason").is_null()) reason = choice["finish_reason"];
    }
  }
  return {{"message", message}, {"finish_reason", reason}};
}

class ChatServer : public ::testing::Test {
 protected:
  static RunningServer& server() {
    static RunningServer running(ServedModels::get().scripted());
    return running;
  }
  // The same, whole and streamed.
  static json choice_of(const json& body) {
    const json whole = server().ask("/v1/chat/completions", body).at("choices").at(0);
    const json streamed =
        assembled(server().stream("/v1/chat/completions", with(body, {{"stream", true}})));
    const json& message = whole.at("message");
    EXPECT_EQ(streamed["finish_reason"], whole.at("finish_reason"));
    EXPECT_EQ(streamed["message"]["role"], "assistant");
    EXPECT_EQ(streamed["message"]["reasoning_content"], message.value("reasoning_content", ""));
    if (message.at("content").is_string()) {
      EXPECT_EQ(streamed["message"]["content"], message["content"]);
    }
    const json calls = message.value("tool_calls", json::array());
    const json streamed_calls = streamed["message"].value("tool_calls", json::array());
    EXPECT_EQ(streamed_calls.size(), calls.size());
    for (std::size_t i = 0; i < std::min(calls.size(), streamed_calls.size()); ++i) {
      EXPECT_EQ(streamed_calls[i]["function"], calls[i]["function"]);
      EXPECT_THAT(streamed_calls[i]["id"].get<std::string>(), HasSubstr("call_"));
    }
    return whole;
  }
};

TEST_F(ChatServer, SaysWhatTheModelSays) {
  for (const char* const script : {"hello", "unicode"}) {
    const json choice = choice_of(question(script));
    EXPECT_EQ(choice.at("message").at("content"), ServedModels::scripts().at(script));
    EXPECT_EQ(choice.at("finish_reason"), "stop");
    EXPECT_EQ(choice.at("logprobs"), nullptr);
  }
}

TEST_F(ChatServer, ReasoningIsNoContent) {
  const json choice = choice_of(question("think"));
  EXPECT_EQ(choice["message"]["content"], "Forty-two is what I say.");
  EXPECT_THAT(choice["message"]["reasoning_content"].get<std::string>(),
              HasSubstr("It asks for a number."));
}

TEST_F(ChatServer, CallsOfToolsAreCalls) {
  const json one = choice_of(with(question("call"), {{"tools", kTools}}));
  EXPECT_EQ(one["finish_reason"], "tool_calls");
  ASSERT_EQ(one["message"]["tool_calls"].size(), 1U);
  const json& function = one["message"]["tool_calls"][0]["function"];
  EXPECT_EQ(function["name"], "weather");
  EXPECT_EQ(json::parse(function["arguments"].get<std::string>()),
            json({{"city", "Paris"}, {"days", 3}}));
  EXPECT_EQ(one["message"]["content"], "Let me see.");
  const json two = choice_of(with(question("two calls"), {{"tools", kTools}}));
  ASSERT_EQ(two["message"]["tool_calls"].size(), 2U);
  EXPECT_EQ(two["message"]["content"], nullptr);
  EXPECT_EQ(two["message"]["tool_calls"][1]["function"]["name"], "time");
  EXPECT_NE(two["message"]["tool_calls"][0]["id"], two["message"]["tool_calls"][1]["id"]);
}

TEST_F(ChatServer, WithoutToolsACallIsContent) {
  const json choice = choice_of(question("call"));
  EXPECT_EQ(choice["finish_reason"], "stop");
  EXPECT_EQ(choice["message"]["content"], ServedModels::scripts().at("call"));
}

TEST_F(ChatServer, ACallThatBreaksOffIsContent) {
  const json body = with(question("broken call"), {{"tools", kTools}});
  const json choice = server().ask("/v1/chat/completions", body)["choices"][0];
  EXPECT_EQ(choice["finish_reason"], "stop");
  EXPECT_EQ(choice["message"]["content"], ServedModels::scripts().at("broken call"));
  EXPECT_FALSE(choice["message"].contains("tool_calls"));
}

TEST_F(ChatServer, UsageCountsPromptAndAnswer) {
  const json body = question("hello");
  const json answer = server().ask("/v1/chat/completions", body);
  const json prompt = server().ask("/apply-template", body);
  const json tokens = server().ask("/tokenize", {{"content", prompt["prompt"]}});
  EXPECT_EQ(answer["usage"]["prompt_tokens"], tokens["tokens"].size());
  const auto n = answer["usage"]["completion_tokens"].get<int>();
  EXPECT_GT(n, 5);
  EXPECT_EQ(answer["usage"]["total_tokens"], n + static_cast<int>(tokens["tokens"].size()));
  const json options = {{"stream", true}, {"stream_options", {{"include_usage", true}}}};
  const auto chunks = server().stream("/v1/chat/completions", with(body, options));
  EXPECT_EQ(chunks.back()["usage"]["completion_tokens"], n);
  EXPECT_EQ(chunks.back()["choices"], json::array());
  EXPECT_EQ(chunks.front()["usage"], nullptr);
}

TEST_F(ChatServer, StopStringsEndTheAnswer) {
  const json choice = choice_of(with(question("hello"), {{"stop", {"never said", "dear"}}}));
  EXPECT_EQ(choice["message"]["content"], "Hello, my ");
  EXPECT_EQ(choice["finish_reason"], "stop");
}

TEST_F(ChatServer, MaxTokensCutTheAnswerOff) {
  const json body = with(question("hello"), {{"max_completion_tokens", 3}});
  const json choice = choice_of(body);
  EXPECT_EQ(choice["finish_reason"], "length");
  EXPECT_EQ(server().ask("/v1/chat/completions", body)["usage"]["completion_tokens"], 3);
  const json calls = with(question("two calls"), {{"tools", kTools}, {"max_tokens", 24}});
  const json cut = server().ask("/v1/chat/completions", calls)["choices"][0];
  EXPECT_EQ(cut["finish_reason"], "length");
  EXPECT_EQ(cut["message"]["tool_calls"].size(), 1U);
}

TEST_F(ChatServer, SeveralChoicesAreApart) {
  const json body = with(question("hello"), {{"n", 3}});
  const json answer = server().ask("/v1/chat/completions", body);
  ASSERT_EQ(answer["choices"].size(), 3U);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(answer["choices"][i]["index"], i);
    EXPECT_EQ(answer["choices"][i]["message"]["content"], ServedModels::scripts().at("hello"));
  }
  std::vector<std::string> texts(3);
  for (const json& chunk :
       server().stream("/v1/chat/completions", with(body, {{"stream", true}}))) {
    const json& choice = chunk["choices"][0];
    texts[choice["index"].get<std::size_t>()] += choice["delta"].value("content", "");
  }
  EXPECT_THAT(texts, ::testing::Each(ServedModels::scripts().at("hello")));
}

TEST_F(ChatServer, MessagesSayTheSame) {
  const json tools = json::parse(R"([{"name": "weather", "input_schema": {"type": "object"}}])");
  const json body = with(question("call"), {{"max_tokens", 200}, {"tools", tools}});
  const json answer = server().ask("/v1/messages", body);
  EXPECT_EQ(answer["type"], "message");
  EXPECT_EQ(answer["stop_reason"], "tool_use");
  ASSERT_EQ(answer["content"].size(), 2U) << answer;
  EXPECT_EQ(answer["content"][0]["text"], "Let me see.");
  EXPECT_EQ(answer["content"][1]["name"], "weather");
  EXPECT_EQ(answer["content"][1]["input"], json({{"city", "Paris"}, {"days", 3}}));
  json input;
  std::string partial;
  std::string text;
  std::vector<std::string> types;
  for (const json& event : server().stream("/v1/messages", with(body, {{"stream", true}}))) {
    types.push_back(event["type"]);
    if (event["type"] != "content_block_delta") continue;
    partial += event["delta"].value("partial_json", "");
    text += event["delta"].value("text", "");
  }
  EXPECT_EQ(text, "Let me see.");
  EXPECT_EQ(json::parse(partial), answer["content"][1]["input"]);
  EXPECT_EQ(types.front(), "message_start");
  EXPECT_EQ(types.back(), "message_stop");
  EXPECT_EQ(std::count(types.begin(), types.end(), "content_block_start"), 2);
  EXPECT_EQ(std::count(types.begin(), types.end(), "content_block_stop"), 2);
  json counted = body;
  counted.erase("max_tokens");
  EXPECT_EQ(server().ask("/v1/messages/count_tokens", counted)["input_tokens"],
            answer["usage"]["input_tokens"].get<int>() +
                answer["usage"]["cache_read_input_tokens"].get<int>());
}

TEST_F(ChatServer, MessagesStopAtSequences) {
  const json body = with(question("hello"), {{"max_tokens", 200}, {"stop_sequences", {"dear"}}});
  const json answer = server().ask("/v1/messages", body);
  EXPECT_EQ(answer["stop_reason"], "stop_sequence");
  EXPECT_EQ(answer["stop_sequence"], "dear");
  EXPECT_EQ(answer["content"][0]["text"], "Hello, my ");
  EXPECT_EQ(
      server().ask("/v1/messages", with(question("hello"), {{"max_tokens", 2}}))["stop_reason"],
      "max_tokens");
}

TEST_F(ChatServer, MessagesRefuseWhatOtherInterfacesTake) {
  for (const json& more : {json{{"n", 2}}, json{{"stop", "x"}}, json{{"stop_sequences", {""}}}}) {
    const json body = with(with(question("hello"), {{"max_tokens", 9}}), more);
    const HttpAnswer answer = server().post("/v1/messages", body);
    EXPECT_EQ(answer.status, 400) << more;
    EXPECT_EQ(json::parse(answer.body)["type"], "error");
  }
}

TEST_F(ChatServer, ResponsesSayTheSame) {
  json tools = json::array();
  tools.push_back(
      {{"type", "function"}, {"name", "weather"}, {"parameters", {{"type", "object"}}}});
  const json body = {{"model", "tiny"}, {"input", "call"}, {"tools", tools}};
  const json answer = server().ask("/v1/responses", body);
  EXPECT_EQ(answer["status"], "completed");
  ASSERT_EQ(answer["output"].size(), 2U) << answer;
  EXPECT_EQ(answer["output"][0]["content"][0]["text"], "Let me see.");
  EXPECT_EQ(answer["output"][1]["type"], "function_call");
  EXPECT_EQ(answer["output"][1]["name"], "weather");
  const auto events = server().stream("/v1/responses", with(body, {{"stream", true}}));
  std::string text;
  std::string arguments;
  for (std::size_t i = 0; i < events.size(); ++i) {
    EXPECT_EQ(events[i]["sequence_number"], i);
    if (events[i]["type"] == "response.output_text.delta") text += events[i]["delta"];
    if (events[i]["type"] == "response.function_call_arguments.delta") {
      arguments += events[i]["delta"];
    }
  }
  EXPECT_EQ(text, "Let me see.");
  EXPECT_EQ(arguments, answer["output"][1]["arguments"].get<std::string>());
  EXPECT_EQ(events.front()["type"], "response.created");
  EXPECT_EQ(events.back()["type"], "response.completed");
  const json& last = events.back()["response"];
  ASSERT_EQ(last["output"].size(), 2U);
  EXPECT_EQ(last["output"][1]["arguments"], answer["output"][1]["arguments"]);
  EXPECT_EQ(server().ask("/v1/responses", with(body, {{"max_output_tokens", 2}}))["status"],
            "incomplete");
}

// The arguments are not UTF-8: this client still gets an answer, and so do others.
TEST_F(ChatServer, CallsThatAreNoTextEndNothing) {
  const json anthropic = json::parse(R"([{"name": "weather", "input_schema": {}}])");
  for (const char* const script : {"bad bytes", "deep call"}) {
    for (const bool streams : {false, true}) {
      const HttpAnswer chat = server().post(
          "/v1/chat/completions", with(question(script), {{"tools", kTools}, {"stream", streams}}));
      EXPECT_EQ(chat.status, 200) << script;
      const HttpAnswer messages = server().post(
          "/v1/messages",
          with(question(script), {{"tools", anthropic}, {"max_tokens", 400}, {"stream", streams}}));
      EXPECT_THAT(messages.status, ::testing::AnyOf(200, 500)) << script;
      json tools = json::array({{{"type", "function"}, {"name", "weather"}}});
      const HttpAnswer responses = server().post(
          "/v1/responses", {{"input", script}, {"tools", tools}, {"stream", streams}});
      EXPECT_EQ(responses.status, 200) << script;
    }
  }
  EXPECT_EQ(choice_of(question("hello"))["finish_reason"], "stop");
}

TEST_F(ChatServer, AModelWithoutNumbersEndsItsRequestAlone) {
  const HttpAnswer answer = server().post("/v1/chat/completions", question("nan"));
  EXPECT_GE(answer.status, 400) << answer.body;
  EXPECT_THAT(answer.body, ::testing::Not(HasSubstr("nan\"")));
  const HttpAnswer streamed =
      server().post("/v1/chat/completions", with(question("nan"), {{"stream", true}}));
  EXPECT_GE(streamed.status, 400);
  EXPECT_EQ(choice_of(question("hello"))["finish_reason"], "stop");
}

TEST_F(ChatServer, LogProbsAreOfTheTokensOfTheContent) {
  const json body = with(question("hello"), {{"logprobs", true}, {"top_logprobs", 2}});
  const json choice = choice_of(body);
  std::string text;
  for (const json& entry : choice["logprobs"]["content"]) {
    text += entry["token"];
    EXPECT_EQ(entry["top_logprobs"].size(), 2U);
    EXPECT_EQ(entry["top_logprobs"][0]["token"], entry["token"]);
    EXPECT_NEAR(entry["logprob"].get<double>(), 0, 1e-3);
  }
  EXPECT_EQ(text, ServedModels::scripts().at("hello"));
  std::string streamed;
  for (const json& chunk :
       server().stream("/v1/chat/completions", with(body, {{"stream", true}}))) {
    const json& log_probs = chunk["choices"][0]["logprobs"];
    if (log_probs.is_null()) continue;
    for (const json& entry : log_probs["content"]) streamed += entry["token"];
  }
  EXPECT_EQ(streamed, text);
}

TEST_F(ChatServer, TextsAndTokensAreTranslated) {
  const std::string text = "Grüße, 北京 <|go hello|> \xF0\x9F\x98\x80";
  const json tokens = server().ask("/tokenize", {{"content", text}})["tokens"];
  EXPECT_EQ(server().ask("/detokenize", {{"tokens", tokens}})["content"], text);
  const json pieces =
      server().ask("/tokenize", {{"content", "<|go hello|>"}, {"with_pieces", true}})["tokens"];
  ASSERT_EQ(pieces.size(), 1U);
  EXPECT_EQ(pieces[0]["piece"], "<|go hello|>");
  EXPECT_EQ(server().post("/detokenize", {{"tokens", {1, 99999}}}).status, 400);
  const json shown = server().ask("/apply-template", question("hello"));
  EXPECT_EQ(shown["prompt"], "user: hello\n<|go hello|>");
}

TEST_F(ChatServer, AnswersInTheFormAskedFor) {
  const json schema = {{"type", "object"},
                       {"properties", {{"a", {{"type", "integer"}}}}},
                       {"required", {"a"}},
                       {"additionalProperties", false}};
  const json format = {{"type", "json_schema"},
                       {"json_schema", {{"name", "x"}, {"schema", schema}}}};
  const json choice = choice_of(with(question("json"), {{"response_format", format}}));
  EXPECT_EQ(json::parse(choice["message"]["content"].get<std::string>()), json({{"a", 1}}));
  // What the model would say does not have that form.
  const json other = choice_of(with(
      question("hello"),
      {{"response_format", {{"type", "regex"}, {"pattern", "[0-9]{3}"}}}, {"temperature", 0}}));
  EXPECT_EQ(other["message"]["content"].get<std::string>().size(), 3U);
}

TEST_F(ChatServer, WhatCannotBeAnsweredIsRefusedByName) {
  struct Case {
    json more;
    const char* words;
  };
  const std::string huge(400, 'x');
  for (const auto& [more, words] : std::vector<Case>{
           {{{"messages", json::array()}}, "messages"},
           {{{"messages", "hello"}}, "messages"},
           {{{"messages", {{{"content", "x"}}}}}, "messages[0]"},
           {{{"temperature", -1}}, "temperature"},
           {{{"top_p", 0}}, "top_p"},
           {{{"n", 0}}, "n:"},
           {{{"n", 65}}, "n:"},
           {{{"seed", "x"}}, "seed"},
           {{{"stop", {1}}}, "stop"},
           {{{"stop", ""}}, "stop"},
           {{{"logit_bias", {{"99999", 1}}}}, "logit_bias"},
           {{{"top_logprobs", 2}}, "top_logprobs"},
           {{{"unknown_field", 2}}, "unknown_field"},
           {{{"grammar", "root ::= ("}}, "grammar"},
           {{{"grammar", "root ::= \"a\" #" + std::string(262144, 'x')}}, "at most 262144 bytes"},
           {{{"response_format", {{"type", "xml"}}}}, "response_format"},
           {{{"response_format", {{"type", "regex"}, {"pattern", "("}}}}, "pattern"},
           {{{"json_schema", {{"type", "nothing"}}}}, "json_schema"},
           {{{"tool_choice", "required"}}, "tool_choice"},
           {{{"speculation", {{"drafter", "other"}}}}, "speculation.drafter"},
           {{{"speculation", {{"rule", "no-such-rule"}}}}, "no-such-rule"},
           {{{"speculation", {{"tree", "static:file=/etc/passwd"}}}}, "speculation.tree"},
           {{{"stream", 1}}, "stream"},
       }) {
    const HttpAnswer answer = server().post("/v1/chat/completions", with(question("hello"), more));
    EXPECT_EQ(answer.status, 400) << more << answer.body;
    EXPECT_THAT(answer.body, HasSubstr(words)) << more;
    EXPECT_EQ(json::parse(answer.body)["error"]["type"], "invalid_request_error");
  }
  const HttpAnswer unrepresentable = server().client().post(
      "/v1/chat/completions",
      R"({"messages": [{"role": "user", "content": "hello"}], "temperature": 1e999})");
  EXPECT_EQ(unrepresentable.status, 400) << unrepresentable.body;
}

// With guarding, a message's special tokens are plain text and take as many tokens as bytes. A
// special token that a template makes out of a message (here one that begins a script) is refused.
TEST_F(ChatServer, MessagesSpellNoSpecialTokensWhereTheyAreGuarded) {
  ServedOptions options;
  options.guard = MessageGuard::special_tokens;
  const RunningServer guarded(ServedModels::get().scripted(), options);
  const auto n_prompt = [](const RunningServer& of, const std::string& content) {
    const json answer =
        of.ask("/v1/messages/count_tokens", {{"messages", question(content)["messages"]}});
    return answer["input_tokens"].get<int>();
  };
  const int plain = n_prompt(guarded, "say");
  EXPECT_EQ(n_prompt(server(), "say"), plain);
  EXPECT_EQ(n_prompt(server(), "say<|end|>"), plain + 2);  // twice: the template repeats it
  EXPECT_EQ(n_prompt(guarded, "say<|end|>"),
            plain + 2 * static_cast<int>(std::string("<|end|>").size()));
  const json body = {{"messages", question("say<|end|>")["messages"]}, {"max_tokens", 1}};
  EXPECT_EQ(guarded.ask("/v1/chat/completions", body)["usage"]["prompt_tokens"],
            n_prompt(guarded, "say<|end|>"));
  json odd = body;
  odd["messages"][0]["role"] = "a<|end|>";
  EXPECT_EQ(guarded.post("/v1/chat/completions", odd).status, 400);
  const HttpAnswer refused = guarded.post("/v1/chat/completions", question("hello"));
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.body, HasSubstr("special tokens"));
}

TEST_F(ChatServer, APromptBeyondTheContextIsRefused) {
  const HttpAnswer answer = server().post("/v1/chat/completions", question(std::string(5000, 'x')));
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(json::parse(answer.body)["error"]["code"], "context_length_exceeded");
}

}  // namespace
}  // namespace outrider::server
