// SPDX-License-Identifier: Apache-2.0
// Over HTTP, behaviour that depends on the model's template: whether it reasons, the form of its
// calls, and how earlier calls are shown to it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/support/models/served_models.h"

namespace outrider::server {
namespace {

using nlohmann::json;
using test::RunningServer;
using test::Scripts;
using test::ServedModels;
using test::TemporaryDirectory;
using test::write_script_model;
using ::testing::HasSubstr;

constexpr const char* kChat = "/v1/chat/completions";

json with(json body, const json& more) {
  body.update(more);
  return body;
}

json asked(const std::string& words) {
  return {{"messages", {{{"role", "user"}, {"content", words}}}}};
}

ServedOptions of_template(const std::string& chat_template, MessageGuard guard = {}) {
  ServedOptions options;
  options.chat_template = chat_template;
  options.guard = guard;
  return options;
}

const json kWeather = json::parse(R"([{"type": "function", "function": {"name": "weather",
    "parameters": {"type": "object", "required": ["city"], "properties":
    {"city": {"type": "string"}, "days": {"type": "integer"}}}}}])");
const json kNow = json::parse(R"([{"type": "function", "function": {"name": "now"}}])");

// A template that makes the model say "think" if both variables are true, "hello" if both are
// false, and "unicode" if neither is set.
TEST(FormsServer, EnableThinkingIsForTheTemplate) {
  const RunningServer server(
      ServedModels::get().scripted(),
      of_template("{% for m in messages %}{{ m['content'] }}{% endfor %}"
                  "{% if enable_thinking is not defined and thinking is not defined %}"
                  "{{ '<|go unicode|>' }}{% elif enable_thinking and thinking %}"
                  "{{ '<|go think|>' }}{% elif not enable_thinking and not thinking %}"
                  "{{ '<|go hello|>' }}{% endif %}{# <think> </think> #}"));
  const auto message = [&](const json& more) {
    return server.ask(kChat, with(asked("x"), more)).at("choices").at(0).at("message");
  };
  const std::string hello = ServedModels::scripts().at("hello");
  EXPECT_EQ(message(json::object())["content"], ServedModels::scripts().at("unicode"));
  EXPECT_EQ(message({{"enable_thinking", false}})["content"], hello);
  EXPECT_THAT(message({{"enable_thinking", true}})["reasoning_content"].get<std::string>(),
              HasSubstr("It asks for a number."));
  const json further = {{"enable_thinking", false},
                        {"chat_template_kwargs", {{"enable_thinking", true}}}};
  EXPECT_EQ(message(further)["content"], hello);
  for (const json& wrong : {json("yes"), json(1)}) {
    const auto answer = server.post(kChat, with(asked("x"), {{"enable_thinking", wrong}}));
    EXPECT_EQ(answer.status, 400);
    EXPECT_THAT(answer.body, HasSubstr("enable_thinking"));
  }
  const json body = with(asked("x"), {{"max_tokens", 100}, {"thinking", {{"type", "disabled"}}}});
  EXPECT_EQ(server.ask("/v1/messages", body)["content"][0]["text"], hello);
}

// GLM's calls: as the model writes them, and forced.
TEST(FormsServer, CallsInPairsOfKeysAndValues) {
  const Scripts scripts = {
      {"call",
       "I look.\n<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Bad Tölz</arg_value>\n"
       "<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n</tool_call>"},
      {"hello", "Hello."}};
  const TemporaryDirectory directory;
  write_script_model(scripts, directory.path());
  const RunningServer server(
      directory.path().string(),
      of_template("{% if tools %}{{ tools | tojson }}<tool_call>{% for k, v in {}.items() %}"
                  "<arg_key>{{ k }}</arg_key><arg_value>{{ v }}</arg_value>{% endfor %}{% endif %}"
                  "{{ '<|go ' + messages[-1]['content'] + '|>' }}"));
  const json call =
      server.ask(kChat, with(asked("call"), {{"tools", kWeather}})).at("choices").at(0);
  EXPECT_EQ(call["finish_reason"], "tool_calls");
  EXPECT_EQ(call["message"]["content"], "I look.");
  ASSERT_EQ(call["message"]["tool_calls"].size(), 1U);
  EXPECT_EQ(call["message"]["tool_calls"][0]["function"],
            json({{"name", "weather"}, {"arguments", R"({"city": "Bad Tölz", "days": 3})"}}));
  // The model would say something else.
  const json forced =
      server
          .ask(kChat,
               with(asked("hello"),
                    {{"tools", kNow}, {"tool_choice", "required"}, {"parallel_tool_calls", false}}))
          .at("choices")
          .at(0);
  EXPECT_EQ(forced["finish_reason"], "tool_calls");
  ASSERT_EQ(forced["message"]["tool_calls"].size(), 1U);
  EXPECT_EQ(forced["message"]["tool_calls"][0]["function"],
            json({{"name", "now"}, {"arguments", "{}"}}));
}

// An answer with a form is a separate message, with reasoning before it or without.
TEST(FormsServer, FormsOfMessagesOnChannels) {
  const std::string answer = "<|channel|>final<|message|>{\"a\": 1}";
  const Scripts scripts = {
      {"think", "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant" + answer},
      {"answer", answer}};
  const TemporaryDirectory directory;
  write_script_model(scripts, directory.path());
  const RunningServer server(directory.path().string(),
                             of_template("{{ '<|go ' + messages[-1]['content'] + '|>' }}"
                                         "{# <|start|> <|channel|> <|message|> #}"));
  const json schema = {{"type", "object"},
                       {"properties", {{"a", {{"type", "integer"}}}}},
                       {"required", {"a"}},
                       {"additionalProperties", false}};
  const json format = {{"type", "json_schema"},
                       {"json_schema", {{"name", "x"}, {"schema", schema}}}};
  for (const auto& [name, text] : scripts) {
    const json message =
        server.ask(kChat, with(asked(name), {{"response_format", format}, {"temperature", 0}}))
            .at("choices")
            .at(0)
            .at("message");
    EXPECT_EQ(message["content"], "{\"a\": 1}") << name;
    EXPECT_EQ(message.value("reasoning_content", ""), name == "think" ? "Hm." : "");
  }
}

// If a template shows no calls, they are written into the content in the model's form. With guarded
// messages, what they spell is plain text.
TEST(FormsServer, EarlierCallsStandInTheContent) {
  const std::string text =
      "{% if tools %}<|tool_list_start|>{{ tools | tojson }}<|tool_list_end|>{% endif %}"
      "{% for m in messages %}[{{ m['role'] }}]{{ m['content'] }}{% endfor %}";
  const RunningServer server(ServedModels::get().scripted(), of_template(text));
  const RunningServer guarded(ServedModels::get().scripted(),
                              of_template(text, MessageGuard::special_tokens));
  const auto talk = [](const std::string& city) {
    json body = asked("Q");
    const json function = {{"name", "weather"}, {"arguments", json({{"city", city}}).dump()}};
    const json call = {{"id", "1"}, {"type", "function"}, {"function", function}};
    body["messages"].push_back(
        {{"role", "assistant"}, {"content", "C"}, {"tool_calls", json::array({call})}});
    body["messages"].push_back({{"role", "tool"}, {"content", "R<|end|>"}, {"tool_call_id", "1"}});
    return body;
  };
  for (const RunningServer* each : {&server, &guarded}) {
    EXPECT_EQ(each->ask("/apply-template", talk("Rome"))["prompt"],
              "[user]Q[assistant]C<|tool_call_start|>[weather(city=\"Rome\")]<|tool_call_end|>"
              "[tool]R<|end|>");
  }
  const auto n_prompt = [&](const RunningServer& of, const std::string& city) {
    return of.ask(kChat, with(talk(city), {{"max_tokens", 1}}))["usage"]["prompt_tokens"]
        .get<int>();
  };
  const int n_spelled = static_cast<int>(std::string("<|end|>").size());
  const int plain = n_prompt(server, "Rome");
  EXPECT_EQ(n_prompt(guarded, "Rome"), plain - 1 + n_spelled);  // in the result
  EXPECT_EQ(n_prompt(server, "Rome<|end|>"), plain + 1);
  EXPECT_EQ(n_prompt(guarded, "Rome<|end|>"), plain - 1 + 2 * n_spelled);
}

}  // namespace
}  // namespace outrider::server
