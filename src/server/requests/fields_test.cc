// SPDX-License-Identifier: Apache-2.0
// Reading fields of requests, and the format of errors, without a server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <new>
#include <stdexcept>
#include <string>

#include "outrider/error.h"
#include "server/api_error.h"
#include "server/requests/conversation.h"
#include "server/requests/generation_fields.h"
#include "server/requests/json_fields.h"
#include "tests/support/models/served_models.h"

namespace outrider::server {
namespace {

using test::ServedModels;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

ApiError error_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const ApiError& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return {0, ""};
}

TEST(ParseJson, TakesJsonAndNothingElse) {
  EXPECT_EQ(parse_json(" {\"b\": [1, null], \"a\": \"\\u00e9\"} ").dump(),
            "{\"b\":[1,null],\"a\":\"\xc3\xa9\"}");
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("{} x"), std::string("{\"a\":1,}"),
        std::string("NaN"), std::string("\"\xff\""), std::string("1e999"), std::string("[-1e999]"),
        std::string("{\"a\": 1}\0", 9), std::string("\"\0\"", 3)}) {
    EXPECT_EQ(error_of([&] { parse_json(text); }).status(), 400) << text;
  }
}

TEST(ParseJson, BoundsTheDepth) {
  const auto nested = [](std::size_t n) { return std::string(n, '[') + std::string(n, ']'); };
  EXPECT_NO_THROW(parse_json(nested(100)));
  EXPECT_THAT(error_of([&] { parse_json(nested(102)); }).what(), HasSubstr("nested"));
  EXPECT_EQ(error_of([&] { parse_json(std::string(1'000'000, '[')); }).status(), 400);
}

TEST(JsonFields, ReadsEachTypeAndRefusesOthers) {
  const Json body = parse_json(
      R"({"t": "x", "b": true, "i": 5, "d": 0.5, "l": [1], "o": {"p": 1}, "n": null,
          "big": 18446744073709551615, "ts": ["a", "b"]})");
  JsonFields fields(body);
  EXPECT_EQ(fields.text("t"), "x");
  EXPECT_EQ(fields.boolean("b"), true);
  EXPECT_EQ(fields.integer("i", 0, 5), 5);
  EXPECT_EQ(fields.number("d", 0, 1), 0.5);
  EXPECT_EQ(fields.number("i", 0, 5), 5);
  EXPECT_EQ(fields.list("l").size(), 1U);
  EXPECT_THAT(fields.texts("ts", 2), ElementsAre("a", "b"));
  EXPECT_THAT(fields.texts("t", 2), ElementsAre("x"));
  EXPECT_EQ(fields.text("n"), std::nullopt);  // null counts as absent
  EXPECT_EQ(fields.text("none"), std::nullopt);
  EXPECT_EQ(fields.list("none").size(), 0U);
  EXPECT_FALSE(fields.has("n"));
  for (const std::function<void()>& wrong : std::vector<std::function<void()>>{
           [&] { fields.text("i"); }, [&] { fields.boolean("i"); }, [&] { fields.integer("d"); },
           [&] { fields.integer("b"); }, [&] { fields.integer("i", 6, 9); },
           [&] { fields.integer("i", 0, 4); }, [&] { fields.integer("big"); },
           [&] { fields.number("t", 0, 1); }, [&] { fields.number("d", 0.6, 1); },
           [&] { fields.list("t"); }, [&] { fields.texts("l", 9); }, [&] { fields.texts("ts", 1); },
           [&] { fields.object("l"); }, [&] { fields.require("none"); },
           [&] { fields.require_text("n"); }}) {
    EXPECT_EQ(error_of(wrong).status(), 400);
  }
}

TEST(JsonFields, NamesThePathOfWhatIsWrong) {
  const Json body = parse_json(R"({"o": {"p": 1}})");
  JsonFields fields(body);
  auto inner = fields.object("o");
  const ApiError error = error_of([&] { inner->text("p"); });
  EXPECT_EQ(error.param(), "o.p");
  EXPECT_STREQ(error.what(), "o.p: expected a string, got a number");
  EXPECT_THAT(error_of([&] { JsonFields(body.at("o").at("p"), "x[3]"); }).what(),
              HasSubstr("x[3]: expected an object"));
}

TEST(JsonFields, WhatIsNotReadIsRefused) {
  const Json body = parse_json(R"({"a": 1, "b": 2, "c": null})");
  JsonFields fields(body);
  fields.integer("a");
  const ApiError error = error_of([&] { fields.finish(); });
  EXPECT_EQ(error.param(), "b");
  EXPECT_EQ(error.code(), "unknown_parameter");
  fields.accept({"b"});
  EXPECT_NO_THROW(fields.finish());
}

TEST(ApiErrors, AreWhatClientsOfEachInterfaceRead) {
  const ApiError error(429, "too \"many\"", "n", "queue_full");
  const Json openai = parse_json(error_body(error));
  EXPECT_EQ(openai["error"]["message"], "too \"many\"");
  EXPECT_EQ(openai["error"]["type"], "rate_limit_error");
  EXPECT_EQ(openai["error"]["param"], "n");
  EXPECT_EQ(openai["error"]["code"], "queue_full");
  const Json anthropic = parse_json(error_body(error, ErrorForm::anthropic));
  EXPECT_EQ(anthropic["type"], "error");
  EXPECT_EQ(anthropic["error"]["type"], "rate_limit_error");
  EXPECT_EQ(parse_json(error_body(ApiError(400, "\xff")))["error"]["param"], nullptr);
}

TEST(ApiErrors, SayWhetherToTryAgain) {
  const auto has = [](int status, const std::string& name) {
    for (const auto& [key, value] : error_response(ApiError(status, "")).headers) {
      if (key == name) return true;
    }
    return false;
  };
  for (const int status : {400, 401, 404, 429, 500, 503}) {
    EXPECT_EQ(has(status, "Retry-After"), status == 429 || status == 503);
    EXPECT_EQ(has(status, "WWW-Authenticate"), status == 401);
  }
}

TEST(ApiErrors, TellARequestsFaultFromTheServers) {
  const auto status = [](const auto& thrown) {
    return api_error_of(std::make_exception_ptr(thrown)).status();
  };
  EXPECT_EQ(status(ApiError(418, "")), 418);
  EXPECT_EQ(status(Error("a", "b", "c", "d")), 400);
  EXPECT_EQ(status(UsageError("a", "b", "c", "d")), 400);
  EXPECT_EQ(status(std::bad_alloc()), 503);
  EXPECT_EQ(status(std::runtime_error("")), 500);
}

Conversation conversation_of(const char* text) {
  const Json body = parse_json(text);
  JsonFields fields(body);
  Conversation conversation = read_conversation(fields);
  fields.finish();
  return conversation;
}

TEST(Conversations, PartsBecomeOneText) {
  const Conversation read = conversation_of(R"({"messages": [
      {"role": "developer", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
      {"role": "user", "content": null}, {"role": "assistant"}]})");
  EXPECT_EQ(read.messages[0]["role"], "system");
  EXPECT_EQ(read.messages[0]["content"], "a\nb");
  EXPECT_EQ(read.messages[1]["content"], "");
  EXPECT_EQ(read.messages[2]["content"], "");
}

TEST(Conversations, ArgumentsOfCallsStayAsTheyCame) {
  const Conversation read = conversation_of(R"({"messages": [{"role": "assistant", "tool_calls": [
      {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{\"a\": 1}"}},
      {"id": "2", "type": "function", "function": {"name": "g", "arguments": ""}},
      {"id": "3", "type": "function", "function": {"name": "h", "arguments": "no JSON"}}]},
      {"role": "user", "content": "x", "tool_calls": null}]})");
  const Json& calls = read.messages[0]["tool_calls"];
  EXPECT_EQ(calls[0]["function"]["arguments"], "{\"a\": 1}");
  EXPECT_EQ(calls[1]["function"]["arguments"], "");
  EXPECT_EQ(calls[2]["function"]["arguments"], "no JSON");
  EXPECT_FALSE(read.messages[1].contains("tool_calls"));
}

TEST(Conversations, WhatNoTextModelReadsIsRefused) {
  for (
      const char* const text : {
          R"({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]})",
          R"({"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]})",
          R"({"messages": [{"role": "user", "content": 5}]})",
          R"({"messages": [{"role": "user", "content": {"type": "text"}}]})",
          R"({"messages": [{"role": 5, "content": ""}]})",
          R"({"messages": [5]})",
          R"({"messages": []})",
          R"({"messages": {}})",
          R"({})",
          R"({"messages": [{"role": "user", "tool_calls": 5}]})",
          R"({"messages": [{"role": "user", "tool_calls": [{}]}]})",
          R"({"messages": [{"role": "user", "tool_calls": [{"function": 1}]}]})",
          R"({"messages": [{"role": "user"}], "tools": [{"type": "web_search"}]})",
          R"({"messages": [{"role": "user"}], "tools": [{"type": "function"}]})",
          R"({"messages": [{"role": "user"}], "tools": [{"type": "function", "function": {}}]})",
          R"({"messages": [{"role": "user"}], "chat_template_kwargs": []})",
      }) {
    EXPECT_EQ(error_of([&] { conversation_of(text); }).status(), 400) << text;
  }
}

class Generation : public ::testing::Test {
 protected:
  static const ServedModel& model() {
    static const ServedModel served(Model::load(ServedModels::get().target(), {.threads = 1}), [] {
      ServedOptions options;
      options.drafters = {"suffix", "model:" + ServedModels::get().draft()};
      options.sampling.temperature = 0.7;
      return options;
    }());
    return served;
  }
  static GenerationFields read(const std::string& text) {
    const Json body = parse_json(text);
    JsonFields fields(body);
    GenerationFields result = read_generation_fields(fields, model());
    fields.finish();
    return result;
  }
};

TEST_F(Generation, TakesTheServersDefaults) {
  const GenerationFields fields = read("{}");
  EXPECT_EQ(fields.options.sampling.temperature, 0.7);
  EXPECT_EQ(fields.options.max_tokens, std::numeric_limits<int>::max());
  EXPECT_EQ(fields.n_choices, 1);
  EXPECT_EQ(fields.speculation.drafter, "suffix");
  EXPECT_EQ(fields.speculation.verify, "exact");
  EXPECT_NE(read("{}").options.seed, read("{}").options.seed);
}

TEST_F(Generation, TakesEachField) {
  const GenerationFields fields = read(
      R"({"temperature": 0, "top_p": 0.5, "top_k": -1, "min_p": 0.1, "presence_penalty": -1,
          "frequency_penalty": 2, "repeat_penalty": 1.1, "logit_bias": {"5": -100, "6": 2.5},
          "max_tokens": 7, "stop": ["a", "b"], "seed": -3, "n": 64, "ignore_eos": true,
          "stop_token_ids": [4], "speculation": false})");
  const SamplingParams& sampling = fields.options.sampling;
  EXPECT_EQ(sampling.temperature, 0);
  EXPECT_EQ(sampling.top_p, 0.5);
  EXPECT_EQ(sampling.top_k, 0);
  EXPECT_EQ(sampling.min_p, 0.1);
  EXPECT_EQ(sampling.presence_penalty, -1);
  EXPECT_EQ(sampling.frequency_penalty, 2);
  EXPECT_EQ(sampling.repetition_penalty, 1.1);
  EXPECT_THAT(
      sampling.logit_bias,
      ElementsAre(std::pair(5, -std::numeric_limits<float>::infinity()), std::pair(6, 2.5F)));
  EXPECT_EQ(fields.options.max_tokens, 7);
  EXPECT_THAT(fields.options.stop_strings, ElementsAre("a", "b"));
  EXPECT_EQ(fields.options.seed, static_cast<std::uint64_t>(-3));
  EXPECT_EQ(fields.n_choices, 64);
  EXPECT_TRUE(fields.options.ignore_eos);
  EXPECT_THAT(fields.options.stop_tokens, ElementsAre(4));
  EXPECT_EQ(fields.speculation.drafter, "none");
}

TEST_F(Generation, ASeedIsCoupledUnlessAskedOtherwise) {
  EXPECT_EQ(read(R"({"seed": 1})").speculation.verify, "coupled");
  EXPECT_EQ(read(R"({"seed": 1, "speculation": {"verify": "block"}})").speculation.verify, "block");
  EXPECT_EQ(read(R"({"seed": 1, "speculation": {"verify": "exact"}})").speculation.verify, "exact");
}

TEST_F(Generation, RefusesWhatCannotBeMeant) {
  for (const char* const text : {R"({"temperature": -0.1})",
                                 R"({"temperature": "1"})",
                                 R"({"top_p": 0})",
                                 R"({"top_p": 1.1})",
                                 R"({"min_p": 2})",
                                 R"({"top_k": -2})",
                                 R"({"n": 0})",
                                 R"({"n": 65})",
                                 R"({"n": 1.0})",
                                 R"({"max_tokens": -1})",
                                 R"({"max_tokens": 1e3})",
                                 R"({"stop": [""]})",
                                 R"({"stop": 5})",
                                 R"({"seed": 1.5})",
                                 R"({"seed": 18446744073709551615})",
                                 R"({"logit_bias": {"x": 1}})",
                                 R"({"logit_bias": {"-1": 1}})",
                                 R"({"logit_bias": {"100000": 1}})",
                                 R"({"logit_bias": {"1": 101}})",
                                 R"({"logit_bias": {"1": "2"}})",
                                 R"({"logit_bias": [1]})",
                                 R"({"logit_bias": {"1 ": 1}})",
                                 R"({"stop_token_ids": [100000]})",
                                 R"({"stop_token_ids": [-1]})",
                                 R"({"stop_token_ids": ["a"]})",
                                 R"({"repeat_penalty": 0})",
                                 R"({"speculation": 5})",
                                 R"({"speculation": {"drafter": "ngram"}})",
                                 R"({"speculation": {"drafter": 5}})",
                                 R"({"speculation": {"else": 5}})",
                                 R"({"speculation": {"rule": "router:path=/etc/passwd"}})",
                                 R"({"speculation": {"tree": "static:file=x"}})",
                                 R"({"speculation": {"tree": "sequoia:profile=x"}})",
                                 R"({"ignore_eos": "yes"})"}) {
    EXPECT_EQ(error_of([&] { read(text); }).status(), 400) << text;
  }
}

}  // namespace
}  // namespace outrider::server
