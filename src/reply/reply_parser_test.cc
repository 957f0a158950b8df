// SPDX-License-Identifier: Apache-2.0
#include "reply/reply_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <numeric>
#include <ostream>
#include <string>
#include <vector>

#include "reply/json_scanner.h"
#include "reply/reply_trace.h"

namespace outrider {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kTools = R"([
  {"type": "function", "function": {"name": "weather", "parameters": {"type": "object",
   "properties": {"city": {"type": "string"}, "days": {"type": "integer"},
                  "exact": {"type": "boolean"}, "places": {"type": "array"},
                  "note": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}}},
  {"name": "write", "parameters": {"type": "object",
   "properties": {"path": {"type": "string"}, "text": {"type": "string"}}}},
  {"name": "now"}])";

std::shared_ptr<const ToolSet> tools() { return std::make_shared<const ToolSet>(kTools); }

ReplyFormat format_named(std::string_view name) {
  const auto format = reply_format_named(name);
  EXPECT_TRUE(format) << name;
  return format.value_or(ReplyFormat{});
}

struct Case {
  const char* format;
  std::string text;
  std::string lines;
};
void PrintTo(const Case& sample, std::ostream* out) {
  *out << sample.format << ": " << sample.text;
}

// The events of a text, cut at every possible place, and byte by byte.
void expect_lines(const ReplyFormat& format, const ReplyParserOptions& options,
                  const std::string& text, const std::string& lines) {
  SCOPED_TRACE(format.name + ": " + text);
  const ReplyTrace whole = trace_reply(format, options, text);
  EXPECT_EQ(whole.lines, lines);
  EXPECT_TRUE(whole.in_order);
  for (const TracedCall& call : whole.calls) {
    EXPECT_TRUE(call.ended);
    if (!call.complete) continue;
    EXPECT_TRUE(Json::parse(call.arguments, nullptr, false).is_object()) << call.arguments;
  }
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    ASSERT_EQ(trace_reply(format, options, text, {cut}).lines, whole.lines) << "cut at " << cut;
  }
  std::vector<std::size_t> all(text.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  EXPECT_EQ(trace_reply(format, options, text, all).lines, whole.lines);
}

class Replies : public ::testing::TestWithParam<Case> {};

TEST_P(Replies, SayTheSameHoweverTheyAreCut) {
  ReplyFormat format = format_named(GetParam().format);
  format.reasoning = {"<think>", "</think>"};
  expect_lines(format, {.tools = tools()}, GetParam().text, GetParam().lines);
}

const Case kCalls[] = {
    {"none", "Just words. <tool_call>{}</tool_call> \n",
     "content: Just words. <tool_call>{}</tool_call> \n"},
    {"hermes", "", ""},
    {"hermes", "  Hello, <b>you</b>! \n", "content:   Hello, <b>you</b>! \n"},
    {"hermes",
     "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Köln\", \"days\": 3}}\n"
     "</tool_call>",
     "call: weather {\"city\": \"Köln\", \"days\": 3}"},
    {"hermes",
     "I look. \n<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>\n<tool_call>"
     "{\"name\": \"weather\", \"arguments\": {\"city\": \"}\\\"{\", \"x\": [1, {\"a\": null}]}}"
     "</tool_call>\n Done. ",
     "content: I look.\ncall: now {}\ncall: weather {\"city\": \"}\\\"{\", \"x\": [1, {\"a\": "
     "null}]}\n"
     "content: Done. "},
    // Arguments before the name, missing, null, as a string; an identifier; several calls at once;
    // no closing marker.
    {"hermes", R"(<tool_call>{"arguments": {"a": 1.5e3}, "name": "now"}</tool_call>)",
     R"(call: now {"a": 1.5e3})"},
    {"hermes", R"(<tool_call>{"name": "now"}</tool_call>)", "call: now {}"},
    {"hermes", R"(<tool_call>{"name": "now", "arguments": null}</tool_call>)", "call: now {}"},
    {"hermes", R"(<tool_call>{"name": "now", "arguments": "{\"a\": \"\\n\"}"}</tool_call>)",
     R"(call: now {"a": "\n"})"},
    {"hermes", R"(<tool_call>{"id": "c1", "name": "now", "type": {"x": 0}, "arguments": {}})",
     "call: now {} #c1"},
    {"hermes", R"(<tool_call>{"name": "now", "arguments": {}, "id": 17} </tool_call>)",
     "call: now {} #17"},
    {"hermes",
     "<tool_call>{\"name\": \"now\"}\n{\"name\": \"write\"}, {\"name\": \"f\"}</tool_call>",
     "call: now {}\ncall: write {}\ncall: f {}"},
    {"hermes", "<tool_call>{\"name\": \"now\"}\n<tool_call>{\"name\": \"write\"}",
     "call: now {}\ncall: write {}"},
    // A line break within a string, which JSON forbids.
    {"hermes", "<tool_call>{\"name\": \"now\", \"arguments\": {\"a\": \"x\n\ty\"}}</tool_call>",
     R"(call: now {"a": "x\n\ty"})"},
    {"smollm", R"(<tool_call>[{"name": "now", "arguments": {}}, {"name": "f"}]</tool_call>)",
     "call: now {}\ncall: f {}"},
    {"granite", R"(<|tool_call|>[{"name": "now", "arguments": {"a": true}}])",
     R"(call: now {"a": true})"},
    {"nemotron", R"(<TOOLCALL>[{"name": "now", "arguments": {"a": true}}]</TOOLCALL>)",
     R"(call: now {"a": true})"},
    {"kimi",
     "I look.<|tool_calls_section_begin|><|tool_call_begin|>functions.weather:0"
     "<|tool_call_argument_begin|>{\"city\": \"Oslo\"}<|tool_call_end|>\n<|tool_call_begin|>\n"
     "functions.now:12 <|tool_call_argument_begin|> {}<|tool_call_end|><|tool_calls_section_end|>",
     "content: I look.\ncall: weather {\"city\": \"Oslo\"} #functions.weather:0\n"
     "call: now {} #functions.now:12"},
    {"kimi", "<|tool_call_begin|>now<|tool_call_argument_begin|>{}<|tool_call_end|>",
     "call: now {} #now"},
    {"kimi", "<|tool_call_begin|>functions.:0<|tool_call_argument_begin|>{}",
     "content: <|tool_call_begin|>functions.:0<|tool_call_argument_begin|>{}"},
    // GLM 4.7's, on one line.
    {"glm",
     "<tool_call>weather<arg_key>city</arg_key><arg_value>Oslo</arg_value><arg_key>days</arg_key>"
     "<arg_value>3</arg_value></tool_call><tool_call>now</tool_call>",
     "call: weather {\"city\": \"Oslo\", \"days\": 3}\ncall: now {}"},
    // The model's quotes within a JSON string.
    {"functiongemma",
     R"(<start_function_call>call:now{a:"x <escape> y",b:["}<escape>"],c:<escape>"<escape>}<end_function_call>)",
     R"(call: now {"a": "x <escape> y", "b": ["}<escape>"], "c": "\""})"},
    {"phi", R"(<|tool_call|>[{"name": "now", "arguments": {"a": true}}]<|/tool_call|>)",
     R"(call: now {"a": true})"},
    {"firefunction", R"( functools[{"name": "now", "arguments": {}}])", "call: now {}"},
    {"command",
     R"(<|START_ACTION|>[ {"tool_call_id": "0", "tool_name": "now", "parameters": {"a": 1}} ]<|END_ACTION|>)",
     R"(call: now {"a": 1} #0)"},
    {"llama", R"({"name": "weather", "parameters": {"city": "Rome"}})",
     R"(call: weather {"city": "Rome"})"},
    {"llama",
     R"( {"type": "function", "name": "now", "parameters": {}}; {"name": "write", "parameters": {"a": 0}})",
     "call: now {}\ncall: write {\"a\": 0}"},
    {"llama", R"(Now: <|python_tag|>{"name": "now", "parameters": {}})",
     "content: Now:\ncall: now {}"},
    {"mistral",
     R"([TOOL_CALLS][{"name": "now", "arguments": {}, "id": "abcdefghi"}, {"name": "f"}])",
     "call: now {} #abcdefghi\ncall: f {}"},
    {"mistral", R"([TOOL_CALLS] {"name": "now", "arguments": {}})", "call: now {}"},
    {"mistral-named", R"([TOOL_CALLS]now[ARGS]{}[TOOL_CALLS]write[CALL_ID]x9[ARGS]{"a": "[ARGS]"})",
     "call: now {}\ncall: write {\"a\": \"[ARGS]\"} #x9"},
    {"mistral-named", R"([TOOL_CALLS]now{"a": []})", R"(call: now {"a": []})"},
    {"mistral-named", R"([TOOL_CALLS][{"name": "now", "arguments": {}}])", "call: now {}"},
    {"deepseek",
     "Well.\n<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n```json\n"
     "{\"city\": "
     "\"Oslo\"}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n"
     "```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
     "content: Well.\ncall: weather {\"city\": \"Oslo\"}\ncall: now {}"},
    {"deepseek-plain",
     "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>now<｜tool▁sep｜>{\"a\": 1}<｜tool▁call▁end｜>"
     "<｜tool▁call▁begin｜>write<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
     "call: now {\"a\": 1}\ncall: write {}"},
    {"deepseek", "<｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n```json\n{}\n```",
     "call: now {}"},
    {"qwen3-coder",
     "Let me.\n\n<tool_call>\n<function=weather>\n<parameter=city>\nBad \"Tölz\"\n</parameter>\n"
     "<parameter=days>\n3\n</parameter>\n<parameter=exact>\nTrue\n</"
     "parameter>\n<parameter=places>\n"
     "[1, \"a\"]\n</parameter>\n<parameter=note>\nNone\n</parameter>\n</function>\n</tool_call>",
     "content: Let me.\ncall: weather {\"city\": \"Bad \\\"Tölz\\\"\", \"days\": 3, \"exact\": "
     "true, "
     "\"places\": [1, \"a\"], \"note\": null}"},
    {"qwen3-coder",
     "<tool_call>\n<function=write>\n<parameter=path>\n7\n</parameter>\n<parameter=text>\n\n "
     "a\n</b>\n\n"
     "</parameter>\n<parameter=more>\n8\n</parameter></function><function=now></function></"
     "tool_call>",
     "call: write {\"path\": \"7\", \"text\": \"\\n a\\n</b>\\n\", \"more\": 8}\ncall: now {}"},
    {"qwen3-coder", "<function=weather>\n<parameter=days>\nsoon\n</parameter>\n</function>",
     "call: weather {\"days\": \"soon\"}"},
    {"qwen3-coder", R"(<tool_call>{"name": "now", "arguments": {}}</tool_call>)", "call: now {}"},
    {"functionary", R"(<function=now>{"a": 1}</function>x)", "call: now {\"a\": 1}\ncontent: x"},
    {"gemma",
     R"([weather(city="Rome", days=-2, exact=False, places=['a', (1, 2.)], x={'k': None}), now()])",
     R"(call: weather {"city": "Rome", "days": -2, "exact": false, "places": ["a", [1, 2.0]], "x": {"k": null}})"
     "\ncall: now {}"},
    {"gemma", "Sure.\n```tool_code\nweather(\"Ro\\'me\\n\\u00e9)\", 2)\nnow()\n```\nThere.",
     "content: Sure.\ncall: weather {\"city\": \"Ro'me\\né)\", \"days\": 2}\ncall: now {}\n"
     "content: There."},
    {"functiongemma",
     "<start_function_call>call:weather{city:<escape>Rome, {Italy}<escape>,days:2,x:{a:[1,<escape>b"
     "<escape>],c:true},w:free text}<end_function_call>",
     "call: weather {\"city\": \"Rome, {Italy}\", \"days\": 2, \"x\": {\"a\": [1, \"b\"], \"c\": "
     "true}, "
     "\"w\": \"free text\"}"},
    {"gemma4", R"(<|tool_call>call:weather{city:<|"|>Rome<|"|>,"days":2,"s":"}x"}<tool_call|>)",
     R"(call: weather {"city": "Rome", "days": 2, "s": "}x"})"},
    {"gemma4", "<|tool_call>call:now{}<tool_call|>", "call: now {}"},
    // An object in Python's syntax, blanks in a text, an unknown tool.
    {"qwen3-coder",
     "<tool_call>\n<function=weather>\n<parameter=places>\n['a', {'b': None}]\n</parameter>\n"
     "</function>\n</tool_call>\n<tool_call>\n<function=other>\n<parameter=a>\n  b\t\n"
     "</parameter>\n<parameter=n>\n1\n</parameter>\n</function>\n</tool_call>",
     "call: weather {\"places\": [\"a\", {\"b\": null}]}\ncall: other {\"a\": \"  b\\t\", \"n\": "
     "1}"},
    // GLM 4.5 and 4.6 with one line per part, and 4.7 on one line.
    {"glm",
     "I look.\n<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value> Bad "
     "\"Tölz\"\n</arg_value>\n"
     "<arg_key>days</arg_key>\n<arg_value> "
     "3\n</arg_value>\n<arg_key>exact</arg_key>\n<arg_value>true"
     "</arg_value>\n<arg_key>places</arg_key>\n<arg_value>[1, 'a']</arg_value>\n</tool_call>\n"
     "<tool_call>now\n</tool_call>",
     "content: I look.\ncall: weather {\"city\": \" Bad \\\"Tölz\\\"\\n\", \"days\": 3, \"exact\": "
     "true, \"places\": [1, \"a\"]}\ncall: now {}"},
    {"glm",
     "<tool_call>write<arg_key>text</arg_key><arg_value></arg_val</arg_value><arg_key> path "
     "</arg_key><arg_value>7</arg_value></tool_call><tool_call>now</tool_call> x",
     "call: write {\"text\": \"</arg_val\", \"path\": \"7\"}\ncall: now {}\ncontent: x"},
    {"glm", "<tool_call>\nother\n<arg_key>a</arg_key>\n<arg_value> b c\n</arg_value>\n</tool_call>",
     "call: other {\"a\": \"b c\"}"},
    {"glm", R"(<tool_call>{"name": "now", "arguments": {}}</tool_call>)", "call: now {}"},
    {"lfm2",
     R"(<|tool_call_start|>[weather(city='Rome', days=2), get-time.now()]<|tool_call_end|>There.)",
     R"(call: weather {"city": "Rome", "days": 2})"
     "\ncall: get-time.now {}\ncontent: There."},
    {"lfm2",
     R"(<|tool_call_start|>[ {"name": "now", "arguments": {"a": 1}, "id": "x"}, {"name": "f"}]<|tool_call_end|>)",
     "call: now {\"a\": 1} #x\ncall: f {}"},
    {"lfm2", R"(<|tool_call_start|>{"name": "now"}<|tool_call_end|>)", "call: now {}"},
    {"lfm2", "[now()]", "content: [now()]"},
    // JSON's syntax instead of Python's: an escaped slash and a pair of surrogates.
    {"lfm2", R"(<|tool_call_start|>[write(text="a\/\ud83d\ude00", path=null)]<|tool_call_end|>)",
     "call: write {\"text\": \"a/\xF0\x9F\x98\x80\", \"path\": null}"},
    {"olmo3", "<function_calls>weather(city=\"Rome\", exact=true)\nnow()</function_calls>",
     "call: weather {\"city\": \"Rome\", \"exact\": true}\ncall: now {}"},
};
INSTANTIATE_TEST_SUITE_P(Calls, Replies, ::testing::ValuesIn(kCalls));

// Text that is no call is passed on as written.
const Case kBroken[] = {
    {"hermes", "<tool_call>", "content: <tool_call>"},
    {"hermes", "a <tool_call> b", "content: a <tool_call> b"},
    {"hermes", "<tool_call></tool_call>", "content: <tool_call></tool_call>"},
    {"hermes", "<tool_call>[]</tool_call> x", "content: <tool_call>[]</tool_call> x"},
    {"hermes", "<tool_call>{\"name\": 3}</tool_call>",
     "content: <tool_call>{\"name\": 3}</tool_call>"},
    {"hermes", "<tool_call>{\"name\": \"\"}", "content: <tool_call>{\"name\": \"\"}"},
    {"hermes", "<tool_call>{\"name\": \"now\", \"arguments\": [1]}",
     "content: <tool_call>{\"name\": \"now\", \"arguments\": [1]}"},
    {"hermes", "<tool_call>{\"name\": \"now\"", "content: <tool_call>{\"name\": \"now\""},
    {"hermes", "<tool_call>{\"name\": \"now\", \"arguments\": {\"a\": nul}}</tool_call>",
     "call: now {\"a\": nul (broken off)\nbroken: <tool_call>{\"name\": \"now\", \"arguments\": "
     "{\"a\": nul"
     "\ncontent: }}</tool_call>"},
    {"hermes", "<tool_call>{\"name\": \"now\", \"arguments\": {\"a\": \"b",
     "call: now {\"a\": \"b (broken off)\n"
     "broken: <tool_call>{\"name\": \"now\", \"arguments\": {\"a\": \"b"},
    {"hermes", "<tool_call>{\"name\": \"now\", \"arguments\": {\"a\": \"\\ud800\"}}",
     "call: now {\"a\": \"\\ud800 (broken off)\nbroken: <tool_call>{\"name\": \"now\", "
     "\"arguments\": "
     "{\"a\": \"\\ud800\ncontent: \"}}"},
    {"hermes", "a \n<tool_call>{\"name\": \"now\", \"arguments\": {",
     "content: a\ncall: now { (broken off)\n"
     "broken:  \n<tool_call>{\"name\": \"now\", \"arguments\": {"},
    {"hermes", "<tool_call>{\"name\": \"now\"}}</tool_call>",
     "call: now {}\ncontent: }</tool_call>"},
    {"hermes", "<tool_call>{\"name\": \"now\"}</tool_ca", "call: now {}\ncontent: </tool_ca"},
    {"hermes", "<<tool_call><tool_call>{\"name\": \"now\"}</tool_call>",
     "content: <<tool_call>\ncall: now {}"},
    {"hermes", "<tool_call>\n<tool_call>\n{\"name\": \"now\"}</tool_call>",
     "content: <tool_call>\ncall: now {}"},
    {"hermes", "<tool_cal", "content: <tool_cal"},
    {"smollm", "<tool_call>[{\"name\": \"now\"}, oh]", "call: now {}\ncontent: , oh]"},
    {"llama", R"({"answer": 42})", R"(content: {"answer": 42})"},
    {"llama", R"({"name": "Bob", "parameters": {}})",
     R"(content: {"name": "Bob", "parameters": {}})"},
    {"llama", R"({"name": "now"})", R"(content: {"name": "now"})"},
    {"llama", R"(x {"name": "now", "parameters": {}})",
     R"(content: x {"name": "now", "parameters": {}})"},
    {"llama", R"({"name": "now", "parameters": {}} and more)", "call: now {}\ncontent: and more"},
    {"llama", "<|python_tag|>print(1)", "content: <|python_tag|>print(1)"},
    {"mistral-named", "[TOOL_CALLS]no name here[ARGS]{}",
     "content: [TOOL_CALLS]no name here[ARGS]{}"},
    {"mistral-named", "[TOOL_CALLS]now[ARGS]1", "content: [TOOL_CALLS]now[ARGS]1"},
    {"deepseek", "<｜tool▁calls▁begin｜>now", "content: <｜tool▁calls▁begin｜>now"},
    {"deepseek", "<｜tool▁calls▁begin｜><｜tool▁calls▁end｜>",
     "content: <｜tool▁calls▁begin｜><｜tool▁calls▁end｜>"},
    {"deepseek", "<｜User｜>", "content: <｜User｜>"},
    {"qwen3-coder", "<tool_call>\n<function=now>\nx", "content: <tool_call>\n<function=now>\nx"},
    {"qwen3-coder", "<function=now><parameter=a>b",
     "call: now {\"a\":  (broken off)\nbroken: <function=now><parameter=a>b"},
    {"gemma", "[link](https://x.org) and [1, 2]", "content: [link](https://x.org) and [1, 2]"},
    {"gemma", "[f(a=1)]", "content: [f(a=1)]"},
    {"gemma", "[now(a=b)]", "content: [now(a=b)]"},
    {"gemma", "[now(a=1", "content: [now(a=1"},
    {"gemma", "```tool_code\nprint(now())\n```", "content: ```tool_code\nprint(now())\n```"},
    {"gemma", "````tool_code\nnow()\n```", "content: `\ncall: now {}"},
    {"functiongemma", "<start_function_call>call:now{a:<escape>b}",
     "content: <start_function_call>call:now{a:<escape>b}"},
    {"functiongemma", "<start_function_call>call:now{a]",
     "content: <start_function_call>call:now{a]"},
    {"glm", "<tool_call></tool_call>", "content: <tool_call></tool_call>"},
    {"glm", "<tool_call>two words\n", "content: <tool_call>two words\n"},
    {"glm", "<tool_call>now\nplease</tool_call>", "content: <tool_call>now\nplease</tool_call>"},
    {"glm", "<tool_call>now<arg_key></arg_key>", "content: <tool_call>now<arg_key></arg_key>"},
    {"glm", "<tool_call>now\n<arg_key>a</arg_key> b",
     "content: <tool_call>now\n<arg_key>a</arg_key> b"},
    {"glm", "<tool_call>write\n<arg_key>text</arg_key>\n<arg_value>b\n</arg_va",
     "call: write {\"text\": \"b\\n (broken off)\nbroken: "
     "<tool_call>write\n<arg_key>text</arg_key>\n<arg_value>b\n</arg_va"},
    {"glm", "<tool_call>now\n<arg_key>a</arg_key><arg_value>b</arg_value>x",
     "call: now {\"a\": \"b\" (broken off)\nbroken: "
     "<tool_call>now\n<arg_key>a</arg_key><arg_value>b</arg_value>\ncontent: x"},
    {"lfm2", "<|tool_call_start|>[now(]<|tool_call_end|>",
     "content: <|tool_call_start|>[now(]<|tool_call_end|>"},
    {"lfm2", "<|tool_call_start|>[now(), {\"name\": \"now\"}]<|tool_call_end|>",
     "call: now {}\ncontent: , {\"name\": \"now\"}]<|tool_call_end|>"},
    {"lfm2", R"(<|tool_call_start|>[now(a="\ud83d")]<|tool_call_end|>)",
     R"(content: <|tool_call_start|>[now(a="\ud83d")]<|tool_call_end|>)"},
    {"olmo3", "<function_calls>no call</function_calls>",
     "content: <function_calls>no call</function_calls>"},
    {"olmo3", "<function_calls>now()\nno call</function_calls>",
     "call: now {}\ncontent: no call</function_calls>"},
};
INSTANTIATE_TEST_SUITE_P(Broken, Replies, ::testing::ValuesIn(kBroken));

const Case kReasoning[] = {
    {"hermes", "<think>\nHm.\n\nSo.\n</think>\n\nYes.", "reasoning: Hm.\n\nSo.\ncontent: Yes."},
    {"hermes", "<think>\n\n</think>\n\nYes.", "content: Yes."},
    {"hermes", " \n<think>a<tool_call>b</think>\n<tool_call>{\"name\": \"now\"}</tool_call>",
     "reasoning: a<tool_call>b\ncall: now {}"},
    {"hermes", "<think>never ends ", "reasoning: never ends "},
    {"hermes", "<think>a</thin", "reasoning: a</thin"},
    {"hermes", "It writes <think> first.", "content: It writes <think> first."},
    {"hermes", "a</think>b", "content: a</think>b"},
    {"hermes", "<tool_call>{\"name\": \"now\"}</tool_call>\n<think>b</think>c",
     "call: now {}\nreasoning: b\ncontent: c"},
    {"llama", "<think>a</think>{\"name\": \"now\", \"parameters\": {}}",
     "reasoning: a\ncall: now {}"},
    {"glm", "\n<think>a</think>\nI look.\n<tool_call>now\n</tool_call>",
     "reasoning: a\ncontent: I look.\ncall: now {}"},
    {"glm", "<think></think>\nb", "content: b"},
    {"lfm2", "<think>[now()]</think><|tool_call_start|>[now()]<|tool_call_end|>",
     "reasoning: [now()]\ncall: now {}"},
};
INSTANTIATE_TEST_SUITE_P(Reasoning, Replies, ::testing::ValuesIn(kReasoning));

// gpt-oss: messages with headers, the first of which the prompt has begun ("<|start|>assistant").
const Case kChannels[] = {
    {"harmony",
     "<|channel|>analysis<|message|>Hm.\n\nSo.\n<|end|><|start|>assistant<|channel|>final<|message|"
     ">"
     "Yes, <b>you</b>. <|return|>",
     "reasoning: Hm.\n\nSo.\ncontent: Yes, <b>you</b>."},
    {"harmony", "<|channel|>final<|message|>Yes.", "content: Yes."},
    {"harmony", "<|channel|>analysis<|message|>never ends ", "reasoning: never ends "},
    {"harmony", "<|channel|>analysis<|message|>a<|en", "reasoning: a<|en"},
    {"harmony", "<|channel|>final<|message|><|end|>", ""},
    // A call with its recipient after the channel or before it, with its type or without.
    {"harmony",
     "<|channel|>analysis<|message|>I look.<|end|><|start|>assistant<|channel|>commentary "
     "to=functions.weather <|constrain|>json<|message|>{\"city\": \"<|end|>\"}<|call|>",
     "reasoning: I look.\ncall: weather {\"city\": \"<|end|>\"}"},
    {"harmony", " to=functions.now<|channel|>commentary json<|message|> {} <|call|>",
     "call: now {}"},
    {"harmony",
     "<|channel|>commentary to=now<|message|>{}<|call|><|start|>assistant<|channel|>commentary "
     "to=functions.write<|message|>{\"path\": 1}<|call|>",
     "call: now {}\ncall: write {\"path\": 1}"},
    // A comment on the calls, and an answer in two messages.
    {"harmony",
     "<|channel|>commentary<|message|>First this.<|end|><|start|>assistant<|channel|>commentary "
     "to=functions.now<|message|>{}<|call|>",
     "content: First this.\ncall: now {}"},
    {"harmony",
     "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>analysis<|message|>b<|end|"
     ">"
     "<|start|>assistant<|channel|>commentary<|message|>c<|end|><|start|>assistant<|channel|>final"
     "<|message|> d<|return|>",
     "reasoning: a\n\nb\ncontent: c\n\nd"},
    // Ends that a model forgot, and invalid headers.
    {"harmony", "<|channel|>analysis<|message|>a<|start|>assistant<|channel|>final<|message|>b",
     "reasoning: a\ncontent: b"},
    {"harmony", "<|channel|>analysis<|message|>a<|channel|>final<|message|>b",
     "reasoning: a\ncontent: b"},
    {"harmony", "Just words. <|constrain|> ", "content: Just words. <|constrain|> "},
    {"harmony", "{\"a\": 1}", "content: {\"a\": 1}"},
    {"harmony", "  to be", "content:   to be"},
    {"harmony", "<|channel|>ana", "content: <|channel|>ana"},
    {"harmony", "<|end|>a<|end|><|st", "content: a<|st"},
    {"harmony", "<|channel|>commentary to=functions.now<|message|>now!<|call|>",
     "content: <|channel|>commentary to=functions.now<|message|>now!"},
    {"harmony", "<|channel|>commentary to=functions.now<|message|>{\"a\": nul}<|call|>",
     "call: now {\"a\": nul (broken off)\nbroken: <|channel|>commentary "
     "to=functions.now<|message|>{\"a\": nul\ncontent: }"},
    {"harmony", "<|channel|>commentary to=functions.now<|message|>{} and",
     "call: now {}\ncontent: and"},
};
INSTANTIATE_TEST_SUITE_P(Channels, Replies, ::testing::ValuesIn(kChannels));

TEST(ReplyParser, LeavesChannelsAloneWhereNobodyWantsThem) {
  const ReplyFormat format = format_named("harmony");
  const std::string reasons = "<|channel|>analysis<|message|>a";
  const std::string answers = "<|end|><|start|>assistant<|channel|>final<|message|>b";
  expect_lines(format, {.reasoning = false}, reasons + answers, "content: " + reasons + "\n\nb");
  const std::string calls = "<|channel|>commentary to=functions.now<|message|>{}";
  expect_lines(format, {.calls = false}, calls + answers, "content: " + calls + "\n\nb");
  expect_lines(format, {.in_reasoning = true}, "a" + answers, "reasoning: a\ncontent: b");
  EXPECT_TRUE(opens_reasoning(format, "<|start|>assistant<|channel|>analysis<|message|>"));
  EXPECT_FALSE(opens_reasoning(format, "<|start|>assistant"));
}

TEST(ReplyParser, BoundsHeaders) {
  const std::string longest(ReplyParser::kLongestHeader_bytes + 5, 'x');
  const std::string text = "<|channel|>" + longest + "<|message|>";
  EXPECT_EQ(trace_reply(format_named("harmony"), {}, text).content, text);
  const std::string blanks(2000, ' ');
  EXPECT_EQ(trace_reply(format_named("harmony"), {}, blanks + "a").content, blanks + "a");
}

TEST(ReplyParser, GoesOnWithReasoningThatThePromptBegan) {
  ReplyFormat format = format_named("hermes");
  format.reasoning = {"<think>", "</think>"};
  const ReplyParserOptions options{.in_reasoning = true};
  expect_lines(format, options, "\nHm.\n</think>\n\nYes.", "reasoning: Hm.\ncontent: Yes.");
  expect_lines(format, options, "<think>\nHm. <think></think>Yes.",
               "reasoning: Hm. <think>\ncontent: Yes.");
  expect_lines(format, options, "Hm", "reasoning: Hm");
  expect_lines(format, {.reasoning = false}, "<think>a</think> b", "content: <think>a</think> b");
  // Qwen3.5 reasons and then calls; DeepSeek-R1 may write a call while it still reasons, which does
  // not count.
  ReplyFormat tagged = format_named("qwen3-coder");
  tagged.reasoning = {"<think>", "</think>"};
  const ReplyParserOptions with_tools{.tools = tools(), .in_reasoning = true};
  expect_lines(tagged, with_tools,
               "Hm <function=now></function>.\n</think>\n\n<tool_call>\n<function=now>\n"
               "</function>\n</tool_call>",
               "reasoning: Hm <function=now></function>.\ncall: now {}");
}

TEST(ReplyParser, LeavesMarkersOfTheAnswerOut) {
  ReplyFormat format = format_named("command");
  format.reasoning = {"<|START_THINKING|>", "<|END_THINKING|>"};
  format.answer = {"<|START_RESPONSE|>", "<|END_RESPONSE|>"};
  expect_lines(format, {},
               "<|START_THINKING|>a<|END_THINKING|><|START_RESPONSE|> b c <|END_RESPONSE|>",
               "reasoning: a\ncontent: b c");
  expect_lines(format, {}, "b <|END_RESPONSE|>", "content: b <|END_RESPONSE|>");
}

TEST(ReplyParser, LeavesCallsAloneWhereNobodyWantsThem) {
  const std::string text = R"( {"name": "now", "parameters": {}} )";
  expect_lines(format_named("llama"), {.calls = false}, text, "content: " + text);
}

TEST(ReplyParser, TakesAnyNameWhereNoToolsAreKnown) {
  expect_lines(format_named("llama"), {}, R"({"name": "any", "parameters": {}})", "call: any {}");
  expect_lines(format_named("gemma"), {}, "[any(a='b')]", R"(call: any {"a": "b"})");
}

// How much of a text a parser has emitted after each push.
std::vector<std::string> said_after(const ReplyFormat& format,
                                    const std::vector<std::string>& pushes) {
  std::string said;
  ReplyParser parser(format, {.tools = tools()}, [&](const ReplyEvent& event) {
    said += event.kind == ReplyEvent::Kind::call_begin ? std::string(event.name) + ":" : "";
    said += event.text;
  });
  std::vector<std::string> after;
  for (const std::string& text : pushes) {
    parser.push(text);
    after.push_back(std::exchange(said, {}));
  }
  return after;
}

TEST(ReplyParser, HoldsBackNoMoreThanMayBecomeAMarker) {
  using ::testing::ElementsAre;
  EXPECT_THAT(said_after(format_named("hermes"), {"a <", "b <tool", "_", "x ", "y"}),
              ElementsAre("a", " <b", "", " <tool_x", " y"));
  EXPECT_THAT(said_after(format_named("hermes"),
                         {"<tool_call>{\"name\": \"now\", \"arguments\": {", "\"a\"", ": 1", "2}"}),
              ElementsAre("now:{", "\"a\"", ": 1", "2}"));
  EXPECT_THAT(said_after(format_named("qwen3-coder"),
                         {"<function=write><parameter=text>", "\nab", "\n", "c</par", "\"x"}),
              ElementsAre("write:{\"text\": \"", "ab", "", "\\nc", "</par\\\"x"));
  EXPECT_THAT(
      said_after(format_named("glm"), {"<tool_call>write\n<arg_key>text</arg_key>\n<arg_value>",
                                       "\nab", "\n", "</arg", "_value>", "</tool_call>"}),
      ElementsAre("write:{\"text\": \"", "\\nab", "\\n", "", "\"", "}"));
  EXPECT_THAT(said_after(format_named("llama"), {"{", "\"", "x\"", ": 1}"}),
              ElementsAre("", "", "{\"x\"", ": 1}"));
  ReplyFormat none;
  none.reasoning = {"<think>", "</think>"};
  EXPECT_THAT(said_after(none, {"a \n", " b ", "<thi"}), ElementsAre("a \n", " b ", ""));
}

TEST(ReplyParser, BoundsDepthAndSize) {
  const ReplyFormat format = format_named("hermes");
  const auto nested = [](std::size_t depth) {
    return R"(<tool_call>{"name": "now", "arguments": {"a": )" + std::string(depth, '[') +
           std::string(depth, ']') + "}}</tool_call>";
  };
  EXPECT_TRUE(trace_reply(format, {}, nested(JsonScanner::kDeepest - 1)).calls.at(0).complete);
  const ReplyTrace deep = trace_reply(format, {}, nested(JsonScanner::kDeepest));
  EXPECT_FALSE(deep.calls.at(0).complete);
  EXPECT_EQ(deep.content, nested(JsonScanner::kDeepest));

  const std::string long_call = R"(<tool_call>{"name": "now", "arguments": {"a": ")" +
                                std::string(ReplyParser::kLongestCall_bytes, 'x') + "\"}}";
  const ReplyTrace large = trace_reply(format, {}, long_call);
  EXPECT_FALSE(large.calls.at(0).complete);
  EXPECT_EQ(large.content, long_call);

  const std::string long_name = "<tool_call>{\"name\": \"" + std::string(300, 'n') + "\"}";
  EXPECT_EQ(trace_reply(format, {}, long_name).content, long_name);
}

// A megabyte of input that might make a parser restart again and again. All cases take five
// seconds; a single one in quadratic time would exceed the test's limit.
TEST(ReplyParser, TakesLinearTimeOnHostileText) {
  const auto repeated = [](const std::string& part) {
    std::string text;
    while (text.size() < 1'000'000) text += part;
    return text;
  };
  const std::vector<std::string> parts = {"<tool_call",
                                          "<tool_call>",
                                          "<tool_call>{\"a\":\"",
                                          "[",
                                          "{",
                                          "<tool_call>[{",
                                          "<function=f><",
                                          "<function=f><parameter=a>",
                                          " ",
                                          "\n<",
                                          "[TOOL_CALLS]",
                                          "[TOOL_CALLS][",
                                          "[TOOL_CALLS]a[ARGS]{\"a\":",
                                          "[now(",
                                          "[now(a=[",
                                          "```tool_code\n[",
                                          "<｜tool▁call▁begin｜>",
                                          "<start_function_call>call:a{a:[",
                                          "<tool_call>now<arg_key>",
                                          "<tool_call>now\n<arg_key>a</arg_key><arg_value>",
                                          "<|tool_call_start|>[now(a='",
                                          "<think>",
                                          "<|python_tag|>{",
                                          "{\"name\":\"now\",\"parameters\":{\"a\":"};
  for (const char* name : {"hermes", "qwen3-coder", "llama", "mistral-named", "gemma", "deepseek",
                           "functiongemma", "glm", "lfm2"}) {
    ReplyFormat format = format_named(name);
    format.reasoning = {"<think>", "</think>"};
    for (const std::string& part : parts) {
      SCOPED_TRACE(std::string(name) + " " + part);
      const std::string text = repeated(part);
      const ReplyTrace trace = trace_reply(format, {.tools = tools()}, text);
      EXPECT_TRUE(trace.in_order);
      if (part != "<think>") {
        EXPECT_EQ(trace.content.size(), text.size());
      }
    }
  }
}

TEST(ReplyParser, EndsOnce) {
  int n_events = 0;
  ReplyParser parser(format_named("hermes"), {}, [&](const ReplyEvent&) { ++n_events; });
  parser.push("<tool");
  EXPECT_EQ(n_events, 0);
  parser.finish();
  parser.finish();
  EXPECT_EQ(n_events, 1);
  EXPECT_EQ(parser.n_calls(), 0);
}

}  // namespace
}  // namespace outrider
