// SPDX-License-Identifier: Apache-2.0
#include "reply/reply_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "outrider/chat_template.h"
#include "outrider/error.h"
#include "reply/argument_schema.h"
#include "reply/reply_trace.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string read_file(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

std::string name_for(std::string_view chat_template) {
  return find_reply_format(chat_template, nullptr).name;
}

// Excerpts in the form of each family's templates.
TEST(ReplyFormat, IsFoundByWhatATemplateWritesAroundCalls) {
  const std::pair<const char*, const char*> samples[] = {
      {"{{ '<|im_start|>' + message.role }}", "none"},
      {R"({{- '\n<tool_call>\n{"name": "' + f.name }}{{- '}\n</tool_call>' }})", "hermes"},
      {R"({{- 'Answer with <tool_call>[{"name": ...}]</tool_call>' }})", "smollm"},
      {"{{ 'You are SmolLM, a friend' }}", "smollm"},
      {R"({{- '<tool_call>\n<function=' + f.name + '>\n<parameter=' + k + '>' }}</tool_call>)",
       "qwen3-coder"},
      {R"({{ '<function=' + f.name + '>' + f.arguments + '</function>' }})", "functionary"},
      {R"({{- '<|start_header_id|>assistant' }}{{- '"parameters": ' + a | tojson }})", "llama"},
      {"{{- '[TOOL_CALLS][' + call | tojson + ']' }}", "mistral"},
      {"{{- '[TOOL_CALLS]' + name + '[CALL_ID]' + id + '[ARGS]' + arguments }}", "mistral-named"},
      {"{{'<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>' + type + '<｜tool▁sep｜>' + name + "
       "'```json'}}",
       "deepseek"},
      {"{{'<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>' + name + '<｜tool▁sep｜>' + arguments}}",
       "deepseek-plain"},
      {"{{- '<|start|>assistant<|channel|>final<|message|>' + content + '<|return|>' }}",
       "harmony"},
      {"{{ '<start_of_turn>' + role }}", "gemma"},
      {"{{ '<start_of_turn>' }}{{ '<start_function_call>call:' + name }}", "functiongemma"},
      {"{{ '<|turn>' }}{{ '<|tool_call>call:' + name + '{' }}", "gemma4"},
      {"{{ '<|start_of_role|>' }}{{ '<|tool_call|>' + content }}", "granite"},
      {"{{ '<|tool|>' + message['tools'] + '<|/tool|>' }}", "phi"},
      {R"({{ '<|START_ACTION|>[{"tool_name": "' }})", "command"},
      {"{{ ' functools[' + calls + ']' }}", "firefunction"},
      {"<tool_call>{{ name }}<arg_key>{{ k }}</arg_key><arg_value>{{ v }}</arg_value></tool_call>",
       "glm"},
      {"{{ '<|tool_call_start|>[' + calls | join(', ') + ']<|tool_call_end|>' }}", "lfm2"},
      {"{{ 'List of tools: <|tool_list_start|>' + tools + '<|tool_list_end|>' }}", "lfm2"},
      {"{{- '<|tool_calls_section_begin|>' }}{{ '<|tool_call_begin|>' + id }}", "kimi"},
      {"{{- '<TOOLCALL>[' + call + ']</TOOLCALL>' }}", "nemotron"},
      {"{{- '<function_calls>' + f + '</function_calls>' -}}", "olmo3"},
  };
  for (const auto& [text, name] : samples) EXPECT_EQ(name_for(text), name) << text;
}

TEST(ReplyFormat, FindsReasoningAndAnswers) {
  const auto reasoning = [](std::string_view text) {
    const MarkerPair pair = find_reply_format(text, nullptr).reasoning;
    return pair.begin + pair.end;
  };
  EXPECT_EQ(reasoning("{{ content.split('</think>')[-1] }}"), "<think></think>");
  EXPECT_EQ(reasoning("{{ '[THINK]' + t + '[/THINK]' }}"), "[THINK][/THINK]");
  EXPECT_EQ(reasoning("{{ '<seed:think>' + t + '</seed:think>' }}"), "<seed:think></seed:think>");
  EXPECT_EQ(reasoning("{{ '<thought>' + t + '</thought>' }}"), "<thought></thought>");
  EXPECT_EQ(reasoning("{{ 'I think' }}"), "");
  const ReplyFormat granite =
      find_reply_format("<think></think><response></response> {{ tools }}", nullptr);
  EXPECT_EQ(granite.answer.begin, "<response>");
  EXPECT_TRUE(granite.template_takes_tools);
  EXPECT_FALSE(find_reply_format("{{ messages }}", nullptr).template_takes_tools);
}

TEST(ReplyFormat, KnowsWhetherThePromptBeganReasoning) {
  ReplyFormat format;
  EXPECT_FALSE(opens_reasoning(format, "<think>"));
  format.reasoning = {"<think>", "</think>"};
  EXPECT_TRUE(opens_reasoning(format, "<|im_start|>assistant\n<think>\n"));
  EXPECT_TRUE(opens_reasoning(format, "<think>"));
  EXPECT_FALSE(opens_reasoning(format, "<think>\n\n</think>\n\n"));
  EXPECT_FALSE(opens_reasoning(format, "assistant\n"));
  EXPECT_FALSE(opens_reasoning(format, " \n"));
}

TEST(ReplyFormat, HasNames) {
  EXPECT_EQ(reply_format_named("phi")->calls.begins, std::vector<std::string>{"<|tool_call|>"});
  EXPECT_EQ(reply_format_named("none")->calls.syntax, CallSyntax::none);
  EXPECT_FALSE(reply_format_named("other"));
  EXPECT_FALSE(reply_format_named(""));
}

TEST(ReplyFormat, ListsItsMarkersOnce) {
  EXPECT_THAT(reply_format_named("mistral-named")->markers(),
              ElementsAre("[TOOL_CALLS]", "[ARGS]", "[CALL_ID]"));
  EXPECT_THAT(reply_format_named("glm")->markers(),
              ElementsAre("<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>",
                          "</arg_value>"));
  EXPECT_THAT(reply_format_named("deepseek-plain")->markers(),
              ElementsAre("<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>", "<｜tool▁calls▁end｜>",
                          "<｜tool▁call▁end｜>", "<｜tool▁sep｜>"));
  ReplyFormat format;
  EXPECT_THAT(format.markers(), IsEmpty());
  format.reasoning = {"<think>", "</think>"};
  EXPECT_THAT(format.markers(), ElementsAre("<think>", "</think>"));
}

struct Published {
  const char* calls;
  const char* reasoning;
};

// All templates in the shared data; those not named here have neither.
TEST(ReplyFormat, IsFoundForPublishedTemplates) {
  const fs::path folder = fs::path(OUTRIDER_SHARED_DATA) / "chat";
  if (!fs::exists(folder)) GTEST_SKIP() << "no shared data: " << folder;
  const std::map<std::string, Published> expected = {
      {"CohereForAI-c4ai-command-r7b-12-2024-tool_use", {"command", "<|START_THINKING|>"}},
      {"NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use", {"hermes", ""}},
      {"Qwen-Qwen2.5-7B-Instruct", {"hermes", ""}},
      {"qwen2.5-instruct", {"hermes", ""}},
      {"deepseek-ai-DeepSeek-R1-Distill-Llama-8B", {"deepseek", "<think>"}},
      {"fireworks-ai-llama-3-firefunction-v2", {"firefunction", ""}},
      {"meetkai-functionary-medium-v3.1", {"functionary", ""}},
      {"meta-llama-Llama-3.2-3B-Instruct", {"llama", ""}},
      {"meta-llama-Llama-3.3-70B-Instruct", {"llama", ""}},
      {"mistralai-Mistral-Nemo-Instruct-2407", {"mistral", ""}},
      {"google-gemma-2-2b-it", {"gemma", ""}},
      {"gemma-it", {"gemma", ""}},
      {"Qwen-Qwen3-Coder-30B-A3B-Instruct", {"qwen3-coder", ""}},
      {"google/gemma-7b-it", {"gemma", ""}},
      {"ibm-granite/granite-3.0-8b-instruct", {"granite", ""}},
      {"Mistral-Large-Instruct-2407 (mistralai 'v3' template; modified to have system prompt at "
       "start)",
       {"mistral", ""}},
      {"Mistral-Nemo-Instruct-2407 (mistralai 'v3-tekken' template; modified to have system prompt "
       "at start)",
       {"mistral", ""}},
  };
  std::map<std::string, std::string> templates;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".jinja") continue;
    templates[entry.path().stem()] = read_file(entry.path());
  }
  const Json goldens = Json::parse(read_file(folder / "goldens" / "llamacpp_cases.json"));
  for (const Json& entry : goldens["cases"]) {
    templates[entry["name"]] = entry["template_str"];
  }
  EXPECT_GE(templates.size(), 50U);  // guards against silently missing templates
  std::size_t n_expected = 0;
  for (const auto& [name, text] : templates) {
    const auto found = expected.find(name);
    const Published published = found == expected.end() ? Published{"none", ""} : found->second;
    n_expected += found == expected.end() ? 0 : 1;
    const ReplyFormat format = find_reply_format(text, nullptr);
    EXPECT_EQ(format.name, published.calls) << name;
    EXPECT_EQ(format.reasoning.begin, published.reasoning) << name;
  }
  EXPECT_EQ(n_expected, expected.size());
}

// The parser reads the calls that a published template writes for an assistant.
TEST(ReplyFormat, ReadsWhatPublishedTemplatesWrite) {
  const fs::path folder = fs::path(OUTRIDER_SHARED_DATA) / "chat";
  if (!fs::exists(folder)) GTEST_SKIP() << "no shared data: " << folder;
  struct Sample {
    const char* file;
    bool arguments_as_text;  // the template expects them as text
    int n_calls;             // that it can write in one reply
  };
  const Sample samples[] = {
      {"templates_llamacpp/CohereForAI-c4ai-command-r7b-12-2024-tool_use.jinja", false, 2},
      {"templates_llamacpp/NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use.jinja", false, 2},
      {"templates_llamacpp/Qwen-Qwen2.5-7B-Instruct.jinja", false, 2},
      {"templates_llamacpp/deepseek-ai-DeepSeek-R1-Distill-Llama-8B.jinja", true, 2},
      {"templates_llamacpp/fireworks-ai-llama-3-firefunction-v2.jinja", true, 2},
      {"templates_llamacpp/meetkai-functionary-medium-v3.1.jinja", true, 2},
      {"templates_llamacpp/meta-llama-Llama-3.2-3B-Instruct.jinja", false, 1},
      {"templates_llamacpp/meta-llama-Llama-3.3-70B-Instruct.jinja", false, 1},
      {"templates_llamacpp/mistralai-Mistral-Nemo-Instruct-2407.jinja", false, 2},
      {"templates_minja/Qwen-Qwen3-Coder-30B-A3B-Instruct.jinja", false, 2},
  };
  const Json tools = Json::parse(R"([
      {"type": "function", "function": {"name": "weather", "description": "Of a place.",
       "parameters": {"type": "object", "properties": {
         "city": {"type": "string", "description": "The place."},
         "days": {"type": "integer", "description": "How many."}}, "required": ["city"]}}}])");
  const Json arguments = Json::parse(R"({"city": "Bad \"Tölz\"", "days": 3})");
  for (const Sample& sample : samples) {
    SCOPED_TRACE(sample.file);
    const std::string text = read_file(folder / sample.file);
    Json calls = Json::array();
    for (int i = 0; i < sample.n_calls; ++i) {
      Json shown = sample.arguments_as_text ? Json(arguments.dump()) : arguments;
      calls.push_back({{"id", "abcdefgh" + std::to_string(i)},
                       {"type", "function"},
                       {"function", {{"name", "weather"}, {"arguments", std::move(shown)}}}});
    }
    Json variables = {{"tools", tools},    {"bos_token", ""},
                      {"eos_token", ""},   {"functions", tools.dump()},
                      {"datetime", "now"}, {"add_generation_prompt", true}};
    variables["messages"] = {{{"role", "user"}, {"content", "How is the weather?"}}};
    const ChatTemplate chat_template(text);
    const std::string prompt = chat_template.render(variables.dump());
    variables["add_generation_prompt"] = false;
    variables["messages"].push_back({{"role", "assistant"},
                                     {"content", nullptr},
                                     {"tool_plan", "I look."},
                                     {"tool_calls", calls}});
    const std::string all = chat_template.render(variables.dump());
    // The prompt may end with text that the template leaves out of earlier replies ("<think>\n").
    const auto [first, other] = std::mismatch(prompt.begin(), prompt.end(), all.begin(), all.end());
    ASSERT_GT(first - prompt.begin(), 20);
    std::string reply(other, all.end());
    for (const char* end : {"<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|END_OF_TURN_TOKEN|>",
                            "<｜end▁of▁sentence｜>", "<|start_header_id|>assistant"}) {
      const std::size_t at = reply.find(end);
      if (at != std::string::npos) reply.resize(at);
    }
    const ReplyFormat format = find_reply_format(text, nullptr);
    // A common beginning of prompt and reply belongs to the reply.
    const std::string marker = format.calls.begins[0];
    for (std::size_t n = marker.size(); n-- > 0;) {
      if (std::string_view(prompt)
              .substr(0, static_cast<std::size_t>(first - prompt.begin()))
              .ends_with(std::string_view(marker).substr(0, n))) {
        reply.insert(0, marker, 0, n);
        break;
      }
    }
    const ReplyTrace trace =
        trace_reply(format, {.tools = std::make_shared<const ToolSet>(tools.dump())}, reply);
    ASSERT_EQ(trace.calls.size(), static_cast<std::size_t>(sample.n_calls)) << reply;
    for (const TracedCall& call : trace.calls) {
      EXPECT_TRUE(call.complete);
      EXPECT_EQ(call.name, "weather");
      EXPECT_EQ(Json::parse(call.arguments), arguments) << call.arguments;
    }
    EXPECT_EQ(trace.content, "") << reply;
  }
}

TEST(ToolSet, ReadsBothForms) {
  const ToolSet tools(R"([{"type": "function", "function": {"name": "a", "parameters":
      {"type": "object", "properties": {"x": {"type": "string"}}}}}, {"name": "b"}])");
  ASSERT_EQ(tools.all().size(), 2U);
  EXPECT_TRUE(is_text(argument_schema(tools.find("a"), "x")));
  EXPECT_EQ(argument_schema(tools.find("a"), "y").schema, nullptr);
  EXPECT_EQ(argument_schema(tools.find("b"), "x").schema, nullptr);
  EXPECT_EQ(argument_schema(nullptr, "x").schema, nullptr);
  EXPECT_EQ(tools.find("c"), nullptr);
  EXPECT_TRUE(ToolSet("").empty());
  EXPECT_TRUE(ToolSet("[]").empty());
  for (const char* bad :
       {"{}", "[", "[1]", "[{}]", R"([{"name": ""}])", R"([{"name": 1}])",
        R"([{"name": "a"}, {"name": "a"}])", R"([{"name": "a", "parameters": 1}])"}) {
    EXPECT_THROW(ToolSet{bad}, Error) << bad;
  }
}

TEST(ToolSet, GivesArgumentsTheKindTheSchemaSays) {
  const auto value = [](const char* text, const char* schema) {
    const Json json = Json::parse(schema);
    return argument_value(text, {&json, &json});
  };
  EXPECT_EQ(value("5", R"({"type": "string"})"), R"("5")");
  EXPECT_EQ(value("\"5\"", R"({"type": "string"})"), R"("\"5\"")");
  EXPECT_EQ(value(" 5 ", R"({"type": "integer"})"), "5");
  EXPECT_EQ(value("five", R"({"type": "integer"})"), R"("five")");
  EXPECT_EQ(value("False", R"({"type": "boolean"})"), "false");
  EXPECT_EQ(value("None", R"({"type": ["string", "null"]})"), "null");
  EXPECT_EQ(value("5", R"({"type": ["string", "null"]})"), R"("5")");
  EXPECT_EQ(value("5", R"({"anyOf": [{"type": "string"}, {"type": "number"}]})"), "5");
  EXPECT_EQ(value("true", R"({"enum": ["true", "false"]})"), R"("true")");
  EXPECT_EQ(value("[1]", R"({"$ref": "#/x"})"), "[1]");
  EXPECT_EQ(value("{\"a\": 1}", "true"), "{\"a\": 1}");
  EXPECT_EQ(argument_value("null", {}), "null");
  EXPECT_EQ(argument_value("a b", {}), R"("a b")");
  EXPECT_EQ(value("5", R"({"const": "5"})"), R"("5")");
  EXPECT_EQ(value("null", R"({"type": "integer", "nullable": true})"), "null");
  EXPECT_EQ(value("5", R"({"allOf": [{"type": ["string", "integer"]}, {"type": "string"}]})"),
            R"("5")");
}

// A text that the schema lists is taken as that text, whatever else it could mean.
TEST(ToolSet, TakesListedTextsAsTexts) {
  const auto value = [](const char* text, const char* schema) {
    const Json json = Json::parse(schema);
    return argument_value(text, {&json, &json});
  };
  const char* const typed = R"({"type": ["string", "integer"], "enum": ["1", "2"]})";
  EXPECT_EQ(value("1", typed), R"("1")");
  const char* const mixed = R"({"enum": ["1", 2, null, "null", "True", "3 "]})";
  EXPECT_EQ(value("1", mixed), R"("1")");
  EXPECT_EQ(value(" 1\n", mixed), R"("1")");
  EXPECT_EQ(value("2", mixed), "2");
  EXPECT_EQ(value("null", mixed), R"("null")");
  EXPECT_EQ(value("True", mixed), R"("True")");
  EXPECT_EQ(value("3 ", mixed), R"("3 ")");
  EXPECT_EQ(value("3", mixed), "3");
  EXPECT_EQ(value("1", R"({"type": ["string", "integer"], "const": "1"})"), R"("1")");
  EXPECT_EQ(value("1", R"({"$ref": "#/$defs/v", "$defs": {"v": {"enum": ["1", 1]}}})"), R"("1")");
}

std::string texts_of(const std::vector<const Json*>& values) {
  std::string out;
  for (const Json* const value : values) out += value->dump() + " ";
  return out;
}

TEST(ToolSet, ListsValues) {
  const auto listed = [](const char* schema) {
    const Json json = Json::parse(schema);
    return texts_of(listed_values({&json, &json}));
  };
  EXPECT_EQ(listed(R"({"enum": ["a", 1, null]})"), R"("a" 1 null )");
  EXPECT_EQ(listed(R"({"type": "string", "enum": ["a", 1, null]})"), R"("a" )");
  EXPECT_EQ(listed(R"({"const": 2})"), "2 ");
  EXPECT_EQ(listed(R"({"type": "string"})"), "");
  EXPECT_EQ(listed(R"({"$ref": "#/$defs/v", "nullable": true, "$defs": {"v": {"enum": ["a"]}}})"),
            R"("a" null )");
  EXPECT_EQ(listed(R"({"$ref": "#"})"), "");
  EXPECT_EQ(texts_of(listed_values({})), "");
}

// Schemas whose choices or parts refer to themselves many times: the number of schemas read is
// bounded.
TEST(ToolSet, LooksAtSoManySchemasAtMost) {
  for (const char* const keyword : {"anyOf", "oneOf", "allOf"}) {
    Json parts = Json::array();
    for (int i = 0; i < 30; ++i) parts.push_back({{"$ref", "#/$defs/v"}});
    const Json root = {{"$ref", "#/$defs/v"}, {"$defs", {{"v", {{keyword, parts}}}}}};
    EXPECT_EQ(value_kinds({&root, &root}), static_cast<unsigned>(kAnyKind)) << keyword;
  }
  // Choices that are all texts, each in as many ways.
  Json root = {{"$ref", "#/$defs/0"}, {"$defs", {{"9", {{"type", "string"}}}}}};
  for (int level = 0; level < 9; ++level) {
    Json choices = Json::array();
    for (int i = 0; i < 30; ++i)
      choices.push_back({{"$ref", "#/$defs/" + std::to_string(level + 1)}});
    root["$defs"][std::to_string(level)] = {{"anyOf", choices}};
  }
  EXPECT_EQ(value_kinds({&root, &root}), static_cast<unsigned>(kAnyKind));
  // Published schemas are within the bounds.
  Json wide = Json::array();
  for (int i = 0; i < 200; ++i) wide.push_back({{"const", std::to_string(i)}});
  const Json choice = {{"anyOf", wide}};
  EXPECT_TRUE(is_text({&choice, &choice}));
}

// Lists and objects in Python's syntax, if the schema accepts them.
TEST(ToolSet, TakesPythonsListsAndObjects) {
  const auto value = [](const char* text, const char* schema) {
    const Json json = Json::parse(schema);
    return argument_value(text, {&json, &json});
  };
  EXPECT_EQ(value(" ['a', (1, True)] ", R"({"type": "array"})"), R"(["a", [1, true]])");
  EXPECT_EQ(value("{'a': None}", R"({"type": "object"})"), R"({"a": null})");
  EXPECT_EQ(value("{'a': None}", R"({"type": "array"})"), R"("{'a': None}")");
  EXPECT_EQ(value("['a']", R"({"type": "string"})"), R"("['a']")");
  EXPECT_EQ(value("['a", R"({"type": "array"})"), R"("['a")");
  EXPECT_EQ(value("['a'", "true"), R"("['a'")");
  for (const char* text : {"(1)", "1_0", "'x'", "True-ish"}) {
    EXPECT_EQ(value(text, "true"), '"' + std::string(text) + '"') << text;
  }
  const std::string deep(200, '[');
  EXPECT_EQ(value(deep.c_str(), R"({"type": "array"})"), '"' + deep + '"');
}

TEST(ToolSet, FollowsReferences) {
  const ToolSet tools(R"([{"name": "f", "parameters": {"type": "object",
      "$defs": {"Word": {"type": "string"}, "Count": {"$ref": "#/$defs/Number"},
                "Number": {"type": "integer"}, "Loop": {"$ref": "#/$defs/Loop"}},
      "properties": {"a": {"$ref": "#/$defs/Word"}, "b": {"$ref": "#/$defs/Count"},
                     "c": {"$ref": "#/$defs/Loop"}, "d": {"$ref": "#/$defs/None"},
                     "e": {"$ref": "else.json"}, "f": {"$ref": "#nowhere"},
                     "g": {"anyOf": [{"$ref": "#/$defs/Word"}, {"type": "null"}]}}}}])");
  const auto schema = [&](const char* key) { return argument_schema(tools.find("f"), key); };
  EXPECT_TRUE(is_text(schema("a")));
  EXPECT_EQ(argument_value("5", schema("a")), R"("5")");
  EXPECT_EQ(argument_value("5", schema("b")), "5");
  EXPECT_FALSE(may_be_text(schema("b")));
  for (const char* key : {"c", "d", "e", "f"}) {
    EXPECT_FALSE(is_text(schema(key))) << key;
    EXPECT_TRUE(may_be_text(schema(key))) << key;
    EXPECT_EQ(argument_value("5", schema(key)), "5") << key;
  }
  EXPECT_EQ(argument_value("5", schema("g")), R"("5")");
  EXPECT_EQ(argument_value("null", schema("g")), "null");
}

// Keywords beside a reference hold as well; percent signs in it are decoded; parameters may be a
// reference.
TEST(ToolSet, KeepsWhatStandsBesideReferences) {
  const ToolSet tools(R"([{"name": "f", "parameters": {"$ref": "#/$defs/P",
      "$defs": {"Count": {"type": "integer"}, "Any": {"type": ["string", "integer"]},
                "P": {"type": "object", "additionalProperties": {"type": "string"}, "properties": {
                     "a": {"$ref": "#/%24defs/Count"},
                     "b": {"$ref": "#/$defs/Count", "nullable": true},
                     "c": {"$ref": "#/$defs/Any", "type": "string"}}}}}}])");
  const auto kinds = [&](const char* key) {
    return value_kinds(argument_schema(tools.find("f"), key));
  };
  EXPECT_EQ(kinds("a"), static_cast<unsigned>(kNumber));
  EXPECT_EQ(kinds("b"), static_cast<unsigned>(kNumber | kNull));
  EXPECT_EQ(kinds("c"), static_cast<unsigned>(kText));
  EXPECT_EQ(kinds("other"), static_cast<unsigned>(kText));
}

}  // namespace
}  // namespace outrider
