// SPDX-License-Identifier: Apache-2.0
#include "reply/tool_grammar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "grammar/random_text.h"
#include "grammar/texts_of.h"
#include "outrider/error.h"
#include "outrider/grammar.h"
#include "reply/reply_trace.h"

namespace outrider {
namespace {

using Json = nlohmann::ordered_json;

const ToolSet& tools() {
  static const ToolSet set(R"([{"name": "a", "parameters": {"type": "object"}}, {"name": "b-2"}])");
  return set;
}

ReplyFormat format_named(const std::string& name) { return reply_format_named(name).value(); }

std::string spelled(const GrammarSequence& sequence) {
  std::string text;
  for (const GrammarPart& part : sequence) {
    text += part.kind == GrammarPart::Kind::schema ? R"({"x": [1, "}"]})" : part.text;
  }
  return text;
}

// The parser reads what the grammar describes as the same calls, in every form that has a grammar.
TEST(ToolGrammar, DescribesWhatTheParserReads) {
  for (const char* name :
       {"hermes", "smollm", "llama", "mistral", "mistral-named", "deepseek", "deepseek-plain",
        "granite", "phi", "command", "functionary", "firefunction", "nemotron"}) {
    const ReplyFormat format = format_named(name);
    const ToolGrammar grammar = make_tool_grammar(format, tools(), {.parallel = true});
    ASSERT_EQ(grammar.calls.size(), 2U);
    EXPECT_TRUE(grammar.several);
    const std::string one =
        spelled(grammar.before) + spelled(grammar.calls[1]) + spelled(grammar.after);
    const std::string two = spelled(grammar.before) + spelled(grammar.calls[0]) +
                            spelled(grammar.between) + spelled(grammar.calls[1]) +
                            spelled(grammar.after);
    const std::string b = R"(call: b-2 {"x": [1, "}"]})";
    const ReplyParserOptions options{.tools = std::make_shared<const ToolSet>(tools())};
    EXPECT_EQ(trace_reply(format, options, one).lines, b) << name << ": " << one;
    EXPECT_EQ(trace_reply(format, options, two).lines, R"(call: a {"x": [1, "}"]})"
                                                       "\n" +
                                                           b)
        << name << ": " << two;
    // The engine is asked to show these markers.
    const std::vector<std::string> markers = format.markers();
    for (const GrammarSequence& sequence :
         {grammar.before, grammar.calls[0], grammar.between, grammar.after}) {
      for (const GrammarPart& part : sequence) {
        if (part.kind != GrammarPart::Kind::marker) continue;
        EXPECT_THAT(markers, ::testing::Contains(part.text)) << name;
      }
    }
  }
}

TEST(ToolGrammar, WritesGbnf) {
  EXPECT_EQ(
      gbnf_of(make_tool_grammar(format_named("hermes"), tools(), {.parallel = true})).text,
      R"gbnf(root ::= "<tool_call>" "\n" call ( "\n" "</tool_call>" "\n" "<tool_call>" "\n" call )* "\n" "</tool_call>"
call ::= call-0 | call-1
call-0 ::= "{\"name\": \"a\", \"arguments\": " arguments-0 "}"
call-1 ::= "{\"name\": \"b-2\", \"arguments\": " arguments-1 "}"
)gbnf");
  EXPECT_EQ(gbnf_of(make_tool_grammar(format_named("llama"), tools(), {.name = "a"})).text,
            R"gbnf(root ::= "" call ""
call ::= call-0
call-0 ::= "{\"name\": \"a\", \"parameters\": " arguments-0 "}"
)gbnf");
}

TEST(ToolGrammar, HoldsTheSchemas) {
  const ToolGrammar grammar = make_tool_grammar(format_named("granite"), tools());
  EXPECT_FALSE(grammar.several);
  const auto schema_of = [](const GrammarSequence& call) { return Json::parse(call.at(1).text); };
  EXPECT_EQ(schema_of(grammar.calls[0]), tools().all()[0].parameters);
  EXPECT_EQ(schema_of(grammar.calls[1]), Json::parse(R"({"type": "object", "properties": {}})"));
}

// The end of a message to a function ends the reply, so there is one call, whatever is requested.
TEST(ToolGrammar, OfMessagesIsOneCall) {
  const ReplyFormat format = format_named("harmony");
  const ToolGrammar grammar = make_tool_grammar(format, tools(), {.parallel = true});
  EXPECT_FALSE(grammar.several);
  const ReplyParserOptions options{.tools = std::make_shared<const ToolSet>(tools())};
  EXPECT_EQ(trace_reply(format, options, spelled(grammar.calls[1])).lines,
            R"(call: b-2 {"x": [1, "}"]})");
}

// Tools with arguments of every kind, some required, one by a reference.
const ToolSet& rich_tools() {
  static const ToolSet set(R"([
    {"name": "weather", "parameters": {"type": "object", "required": ["city", "days"],
     "$defs": {"Unit": {"enum": ["c", "f"]}, "Node": {"type": "object", "required": ["v"],
       "properties": {"v": {"type": "integer"}, "next": {"$ref": "#/$defs/Node"}}}},
     "properties": {"exact": {"type": "boolean"}, "city": {"type": "string"},
       "unit": {"$ref": "#/$defs/Unit"}, "days": {"type": "integer", "minimum": -9, "maximum": 9},
       "node": {"$ref": "#/$defs/Node"},
       "places": {"type": "array", "items": {"type": "string", "maxLength": 3}},
       "range": {"type": "object", "required": ["from"], "additionalProperties": false,
         "properties": {"from": {"type": "number"}, "note": {"type": "string"}}},
       "limit": {"type": ["integer", "null"]}}}},
    {"name": "note", "parameters": {"type": "object",
     "properties": {"text": {"type": "string"}, "any": {},
       "level": {"type": "string", "enum": ["low", "high"]},
       "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}},
    {"name": "now"}])");
  return set;
}

constexpr const char* kSingleArguments[] = {"qwen3-coder", "glm",           "lfm2",  "olmo3",
                                            "gemma",       "functiongemma", "gemma4"};

std::shared_ptr<const Grammar> grammar_of(const ReplyFormat& format, const ToolSet& tools,
                                          const ToolGrammarOptions& options) {
  const Gbnf gbnf = gbnf_of(make_tool_grammar(format, tools, options));
  return Grammar::from_gbnf(gbnf.text, gbnf.schemas);
}

void expect_of_kind(const std::string& call, const Json& arguments) {
  const auto is = [&](const char* key, bool (Json::*of_kind)() const noexcept) {
    if (arguments.contains(key)) {
      EXPECT_TRUE((arguments[key].*of_kind)()) << key << " in " << arguments;
    }
  };
  if (call == "weather") {
    EXPECT_TRUE(arguments.contains("city") && arguments.contains("days")) << arguments;
    is("city", &Json::is_string);
    is("exact", &Json::is_boolean);
    is("days", &Json::is_number_integer);
    is("places", &Json::is_array);
    is("range", &Json::is_object);
    is("node", &Json::is_object);
    if (arguments.contains("range")) {
      EXPECT_TRUE(arguments["range"].at("from").is_number()) << arguments;
      EXPECT_LE(arguments["range"].size(), 2U);
    }
    if (arguments.contains("node")) {
      EXPECT_TRUE(arguments["node"].at("v").is_number_integer());
    }
    if (arguments.contains("unit")) {
      EXPECT_TRUE(arguments["unit"] == "c" || arguments["unit"] == "f") << arguments;
    }
    if (arguments.contains("limit")) {
      EXPECT_TRUE(arguments["limit"].is_null() || arguments["limit"].is_number_integer());
    }
    for (const Json& place : arguments.value("places", Json::array())) {
      EXPECT_TRUE(place.is_string()) << arguments;
    }
    EXPECT_LE(std::abs(arguments["days"].get<int>()), 9);
  } else if (call == "note") {
    is("text", &Json::is_string);
    if (arguments.contains("level")) {
      EXPECT_TRUE(arguments["level"] == "low" || arguments["level"] == "high") << arguments;
    }
  } else {
    EXPECT_EQ(call, "now");
    EXPECT_EQ(arguments, Json::object());
  }
}

// Every text of the grammar consists of calls, with arguments of the schemas' kinds.
TEST(ToolGrammar, WritesCallsThatTheParserReads) {
  const ReplyParserOptions options{.tools = std::make_shared<const ToolSet>(rich_tools())};
  std::mt19937 random(7);
  for (const char* const name : kSingleArguments) {
    const ReplyFormat format = format_named(name);
    for (const bool parallel : {false, true}) {
      const TextsOf texts(*grammar_of(format, rich_tools(), {.parallel = parallel})->compiled());
      std::set<std::string> seen;
      for (int i = 0; i < 40; ++i) {
        const std::string text = random_text(texts, random);
        SCOPED_TRACE(std::string(name) + ": " + text);
        const ReplyTrace trace = trace_reply(format, options, text);
        EXPECT_EQ(trace.content, "");
        ASSERT_GE(trace.calls.size(), 1U);
        if (!parallel) {
          EXPECT_EQ(trace.calls.size(), 1U);
        }
        for (const TracedCall& call : trace.calls) {
          ASSERT_TRUE(call.complete);
          seen.insert(call.name);
          const Json arguments = Json::parse(call.arguments, nullptr, false);
          ASSERT_TRUE(arguments.is_object()) << call.arguments;
          expect_of_kind(call.name, arguments);
        }
      }
      EXPECT_EQ(seen.size(), 3U) << name;
    }
  }
}

// The grammar contains templates' spelling of earlier calls, and none that the parser does not read
// as calls of these tools.
TEST(ToolGrammar, HasTheCallsThatTemplatesWrite) {
  struct Sample {
    const char* format;
    std::vector<std::string> good;
    std::vector<std::string> bad;
  };
  const Sample samples[] = {
      {"qwen3-coder",
       {"<tool_call>\n<function=weather>\n<parameter=city>\nBad <b>Tölz</b>\n\n</parameter>\n"
        "<parameter=unit>\nc\n</parameter>\n<parameter=days>\n3\n</parameter>\n"
        "<parameter=places>\n[\"a\", \"b\"]\n</parameter>\n</function>\n</tool_call>",
        "<tool_call>\n<function=now>\n</function>\n</tool_call>\n<tool_call>\n<function=note>\n"
        "<parameter=text>\n</par\n</parameter>\n</function>\n</tool_call>"},
       {("<tool_call>\n<function=weather>\n<parameter=city>\nRome\n</parameter>\n</function>\n"
         "</tool_call>"),
        "<tool_call>\n<function=weather>\n<parameter=city>\nRome\n</parameter>\n<parameter=days>\n"
        "soon\n</parameter>\n</function>\n</tool_call>",
        "<tool_call>\n<function=other>\n</function>\n</tool_call>",
        "<tool_call>\n<function=note>\n<parameter=level>\nmid\n</parameter>\n</function>\n"
        "</tool_call>",
        "<tool_call>\n<function=now>\n</function>\n"}},
      {"glm",
       {"<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Rome</arg_value>\n"
        "<arg_key>days</arg_key>\n<arg_value>-3</arg_value>\n<arg_key>node</arg_key>\n"
        "<arg_value>{\"v\": 1, \"next\": {\"v\": 2}}</arg_value>\n</tool_call>",
        "<tool_call>now\n</tool_call>\n<tool_call>now\n</tool_call>",
        // GLM 4.7's.
        "<tool_call>weather<arg_key>city</arg_key><arg_value>Rome</arg_value><arg_key>days"
        "</arg_key><arg_value>-3</arg_value></tool_call><tool_call>now</tool_call>"},
       {"<tool_call>weather\n</tool_call>", "<tool_call>weather</tool_call>",
        "<tool_call>now\n\n</tool_call>",
        ("<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Rome</arg_value>\n"
         "<arg_key>days</arg_key>\n<arg_value>\"3\"</arg_value>\n</tool_call>"),
        "<tool_call>now"}},
      {"lfm2",
       {R"(<|tool_call_start|>[weather(exact=true, city="Rome", days=3, range={"from": 1.5})]<|tool_call_end|>)",
        R"(<|tool_call_start|>[weather(exact=True, city="Rome", days=3, limit=None)]<|tool_call_end|>)",
        R"(<|tool_call_start|>[now(), note(any=False), note(any=None, maybe=None)]<|tool_call_end|>)",
        R"(<|tool_call_start|>[now(), note(), note(any=[1], maybe=null)]<|tool_call_end|>)"},
       {R"(<|tool_call_start|>[weather(city="Rome")]<|tool_call_end|>)",
        R"(<|tool_call_start|>[weather(city=None, days=3)]<|tool_call_end|>)",
        R"(<|tool_call_start|>[weather(city="Rome", days=True)]<|tool_call_end|>)",
        R"(<|tool_call_start|>[weather(, city="Rome", days=3)]<|tool_call_end|>)",
        R"(<|tool_call_start|>[weather(city="Rome" days=3)]<|tool_call_end|>)",
        R"(<|tool_call_start|>[]<|tool_call_end|>)"}},
      {"olmo3",
       {"<function_calls>note(text=\"a\", level=\"low\")\nnow()</function_calls>"},
       {"<function_calls>[now()]</function_calls>"}},
      {"gemma4",
       {R"(<|tool_call>call:weather{city:<|"|>Ro"me<|"|>,days:3,places:[<|"|>a<|"|>,<|"|><|"|>],range:{from:1.5,note:<|"|>x<|"|>}}<tool_call|><|tool_call>call:now{}<tool_call|>)",
        R"(<|tool_call>call:note{level:<|"|>low<|"|>}<tool_call|>)"},
       {R"(<|tool_call>call:weather{city:Rome,days:3}<tool_call|>)",
        R"(<|tool_call>call:weather{city:<|"|>Rome<|"|>,days:3,range:{note:<|"|>x<|"|>}}<tool_call|>)",
        R"(<|tool_call>call:note{level:<|"|>mid<|"|>}<tool_call|>)"}},
  };
  const ReplyParserOptions options{.tools = std::make_shared<const ToolSet>(rich_tools())};
  for (const Sample& sample : samples) {
    const ReplyFormat format = format_named(sample.format);
    const TextsOf texts(*grammar_of(format, rich_tools(), {.parallel = true})->compiled());
    for (const std::string& text : sample.good) {
      EXPECT_TRUE(texts.has(text)) << text;
      const ReplyTrace trace = trace_reply(format, options, text);
      EXPECT_EQ(trace.content, "") << text;
      for (const TracedCall& call : trace.calls)
        expect_of_kind(call.name, Json::parse(call.arguments));
    }
    for (const std::string& text : sample.bad) EXPECT_FALSE(texts.has(text)) << text;
  }
}

// Whether the grammar of a form, for one tool `f` with these parameters, has a text; `arguments`
// gets the parser's reading of it.
bool has_call(const char* format_name, const std::string& parameters, const std::string& text,
              std::string* arguments = nullptr) {
  const ToolSet tools("[{\"name\": \"f\", \"parameters\": " + parameters + "}]");
  const ReplyFormat format = format_named(format_name);
  const TextsOf texts(*grammar_of(format, tools, {})->compiled());
  const ReplyTrace trace =
      trace_reply(format, {.tools = std::make_shared<const ToolSet>(tools)}, text);
  if (arguments != nullptr) *arguments = trace.calls.empty() ? "" : trace.calls[0].arguments;
  return texts.has(text);
}

// References in an argument's schema are resolved in the tool's.
TEST(ToolGrammar, LooksReferencesUpInTheWholeSchema) {
  const std::string parameters = R"({"type": "object", "required": ["n"],
      "$defs": {"w": {"enum": ["a"]}}, "properties": {"n": {"type": "integer"},
      "same": {"$ref": "#/properties/n"}, "self": {"$ref": "#"},
      "list": {"type": "array", "items": {"$ref": "#/$defs/w"}, "$defs": {"x": {}}}}})";
  const auto lfm2 = [](const std::string& words) {
    return "<|tool_call_start|>[f(" + words + ")]<|tool_call_end|>";
  };
  EXPECT_TRUE(has_call("lfm2", parameters, lfm2("n=1")));
  EXPECT_TRUE(has_call("lfm2", parameters, lfm2("n=1, same=2")));
  EXPECT_FALSE(has_call("lfm2", parameters, lfm2("n=1, same=\"x\"")));
  EXPECT_TRUE(has_call("lfm2", parameters, lfm2("n=1, self={\"n\": 2, \"same\": 3}")));
  EXPECT_FALSE(has_call("lfm2", parameters, lfm2("n=1, self={}")));
  EXPECT_TRUE(has_call("lfm2", parameters, lfm2("n=1, list=[\"a\"]")));
  EXPECT_FALSE(has_call("lfm2", parameters, lfm2("n=1, list=[\"b\"]")));
  const auto gemma4 = [](const std::string& words) {
    return "<|tool_call>call:f{" + words + "}<tool_call|>";
  };
  EXPECT_TRUE(has_call("gemma4", parameters, gemma4("n:1,self:{\"n\": 2}")));
  EXPECT_FALSE(has_call("gemma4", parameters, gemma4("n:1,list:[\"b\"]")));
  // The whole schema may be a reference.
  const std::string referred = R"({"$ref": "#/$defs/P", "$defs": {"P": {"type": "object",
      "required": ["s"], "properties": {"s": {"type": "string"}}}}})";
  std::string arguments;
  EXPECT_TRUE(has_call("glm", referred,
                       "<tool_call>f\n<arg_key>s</arg_key>\n<arg_value>5</arg_value>\n</tool_call>",
                       &arguments));
  EXPECT_EQ(arguments, R"({"s": "5"})");
  EXPECT_FALSE(has_call("glm", referred, "<tool_call>f\n</tool_call>"));
}

// Arguments that are required but not described, if the schema allows others.
TEST(ToolGrammar, HasWhatIsRequiredBesideProperties) {
  const std::string open = R"({"required": ["x"], "properties": {"a": {"type": "integer"}}})";
  const auto glm = [](const std::string& text) {
    return "<tool_call>f<arg_key>x</arg_key><arg_value>" + text + "</arg_value></tool_call>";
  };
  EXPECT_TRUE(has_call("glm", open, glm("any")));
  EXPECT_FALSE(has_call("glm", open, "<tool_call>f</tool_call>"));
  const std::string texts = R"({"required": ["x"], "additionalProperties": {"type": "string"}})";
  std::string arguments;
  EXPECT_TRUE(has_call("glm", texts, glm("5"), &arguments));
  EXPECT_EQ(arguments, R"({"x": "5"})");
  EXPECT_FALSE(has_call("lfm2", texts, "<|tool_call_start|>[f(x=5)]<|tool_call_end|>"));
  EXPECT_TRUE(has_call("lfm2", texts, "<|tool_call_start|>[f(x=\"5\")]<|tool_call_end|>"));
  EXPECT_TRUE(has_call("lfm2", open, "<|tool_call_start|>[f(x=[5])]<|tool_call_end|>"));
  EXPECT_TRUE(has_call("gemma4", open, "<|tool_call>call:f{x:{\"b\": 1}}<tool_call|>"));
  // Also in a nested object, which is then JSON.
  const std::string inner = R"({"required": ["o"], "properties": {"o": {"type": "object",
      "required": ["x"], "properties": {"a": {"type": "integer"}}}}})";
  EXPECT_TRUE(has_call("gemma4", inner, "<|tool_call>call:f{o:{\"x\": 1}}<tool_call|>"));
  EXPECT_FALSE(has_call("gemma4", inner, "<|tool_call>call:f{o:{}}<tool_call|>"));
}

// Listed values, texts and others: each is read back as listed.
TEST(ToolGrammar, ListedValuesAreReadAsWhatIsListed) {
  const std::string parameters = R"({"properties": {"v": {"enum": ["1", 2, "a", null, "null"]},
      "w": {"type": ["string", "integer"], "enum": ["1", "2"]}}})";
  const auto qwen = [](const std::string& key, const std::string& text) {
    return "<tool_call>\n<function=f>\n<parameter=" + key + ">\n" + text +
           "\n</parameter>\n</function>\n</tool_call>";
  };
  for (const auto& [text, value] :
       std::vector<std::pair<std::string, std::string>>{{"1", R"({"v": "1"})"},
                                                        {"2", R"({"v": 2})"},
                                                        {"a", R"({"v": "a"})"},
                                                        {"null", R"({"v": "null"})"}}) {
    std::string arguments;
    EXPECT_TRUE(has_call("qwen3-coder", parameters, qwen("v", text), &arguments)) << text;
    EXPECT_EQ(arguments, value);
  }
  EXPECT_FALSE(has_call("qwen3-coder", parameters, qwen("v", "3")));
  std::string arguments;
  EXPECT_TRUE(has_call("qwen3-coder", parameters, qwen("w", "1"), &arguments));
  EXPECT_EQ(arguments, R"({"w": "1"})");
}

// Python's constants as whole arguments of these kinds, and as listed values.
TEST(ToolGrammar, TakesPythonsConstants) {
  const std::string parameters =
      R"({"properties": {"yes": {"enum": [true, "x"]}, "none": {"enum": [null, 1]},
      "object": {"properties": {}}, "list": {"type": "array", "items": {"type": "boolean"}}}})";
  const auto lfm2 = [](const std::string& words) {
    return "<|tool_call_start|>[f(" + words + ")]<|tool_call_end|>";
  };
  std::string arguments;
  EXPECT_TRUE(has_call("lfm2", parameters, lfm2("yes=True"), &arguments));
  EXPECT_EQ(arguments, R"({"yes": true})");
  EXPECT_TRUE(has_call("lfm2", parameters, lfm2("yes=true")));
  EXPECT_FALSE(has_call("lfm2", parameters, lfm2("yes=False")));
  EXPECT_TRUE(has_call("lfm2", parameters, lfm2("none=None"), &arguments));
  EXPECT_EQ(arguments, R"({"none": null})");
  EXPECT_FALSE(has_call("lfm2", parameters, lfm2("yes=None")));
  EXPECT_FALSE(has_call("lfm2", parameters, lfm2("object=True")));
  EXPECT_TRUE(has_call("lfm2", parameters, lfm2("list=[true]")));
  EXPECT_FALSE(has_call("lfm2", parameters, lfm2("list=[True]")));
}

// The model's quotes within JSON, if an argument may be a text or something else.
TEST(ToolGrammar, OfBarewordsHasJsonWithTheModelsQuotes) {
  const std::string parameters = R"({"properties": {"a": {"type": ["string", "null"]}}})";
  std::string arguments;
  EXPECT_TRUE(has_call("functiongemma", parameters,
                       R"(<start_function_call>call:f{a:"a <escape> b"}<end_function_call>)",
                       &arguments));
  EXPECT_EQ(arguments, R"({"a": "a <escape> b"})");
}

// A call's identifier contains a number; any is allowed.
TEST(ToolGrammar, OfKimiHasIdentifiers) {
  const auto kimi = [](const std::string& id) {
    return "<|tool_calls_section_begin|><|tool_call_begin|>" + id +
           "<|tool_call_argument_begin|>{\"x\": 1}<|tool_call_end|><|tool_calls_section_end|>";
  };
  std::string arguments;
  const std::string any = R"({"type": "object"})";
  EXPECT_TRUE(has_call("kimi", any, kimi("functions.f:0"), &arguments));
  EXPECT_EQ(arguments, R"({"x": 1})");
  EXPECT_TRUE(has_call("kimi", any, kimi("functions.f:12")));
  for (const char* const id : {"f:0", "functions.f", "functions.f:", "functions.g:0"}) {
    EXPECT_FALSE(has_call("kimi", any, kimi(id))) << id;
  }
}

// A named tool's calls only, and a single call if several are not wanted.
TEST(ToolGrammar, OfSingleArgumentsTakesOptions) {
  const std::string one = "<tool_call>now\n</tool_call>";
  const std::string other = "<tool_call>note\n</tool_call>";
  const TextsOf named(*grammar_of(format_named("glm"), rich_tools(), {.name = "now"})->compiled());
  EXPECT_TRUE(named.has(one));
  EXPECT_FALSE(named.has(other));
  EXPECT_FALSE(named.has(one + "\n" + one));
  const TextsOf any(*grammar_of(format_named("glm"), rich_tools(), {.parallel = true})->compiled());
  EXPECT_TRUE(any.has(other + "\n" + one));
}

// After reasoning the next message begins, as in an unconstrained reply.
TEST(ToolGrammar, ReasoningOfMessagesEndsWithTheNext) {
  const ReplyFormat format = format_named("harmony");
  const TextsOf texts(*Grammar::sequence(*Grammar::from_gbnf(gbnf_of_reasoning(format, false)),
                                         *grammar_of(format, tools(), {}))
                           ->compiled());
  const std::string call =
      "<|channel|>commentary to=functions.a <|constrain|>json<|message|>{\"x\": 1}";
  const std::string reasoning = "<|channel|>analysis<|message|>Hm.<|end|>";
  EXPECT_TRUE(texts.has(call));
  EXPECT_TRUE(texts.has(reasoning + "<|start|>assistant" + call));
  EXPECT_FALSE(texts.has(reasoning + call));
  EXPECT_EQ(trace_reply(format, {}, reasoning + "<|start|>assistant" + call).lines,
            "reasoning: Hm.\ncall: a {\"x\": 1}");
}

std::string error_of(const std::string& format, const std::string& tool_list) {
  try {
    make_tool_grammar(format_named(format), ToolSet(tool_list));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(ToolGrammar, SaysWhatItCannot) {
  EXPECT_EQ(error_of("none", R"([{"name": "a"}])"),
            "[tool choice] form of calls: expected one that is known, to hold the model to a call, "
            "got none");
  // Names that contain an end mark of their form.
  EXPECT_EQ(error_of("lfm2", R"([{"name": "a b"}])"),
            "[tool choice] tools: expected names that the model's form of calls can spell, got 'a "
            "b'");
  EXPECT_EQ(error_of("gemma", R"([{"name": "2a"}])").substr(0, 20), "[tool choice] tools:");
  EXPECT_EQ(error_of("qwen3-coder", R"([{"name": "a>b"}])").substr(0, 20), "[tool choice] tools:");
  EXPECT_EQ(error_of("glm", R"([{"name": "a<b"}])").substr(0, 20), "[tool choice] tools:");
  EXPECT_EQ(error_of("gemma4", R"([{"name": "a{"}])").substr(0, 20), "[tool choice] tools:");
  const auto with_key = [](const std::string& key) {
    return R"([{"name": "a", "parameters": {"properties": {")" + key + R"(": {}}}}])";
  };
  EXPECT_EQ(error_of("qwen3-coder", with_key("x y")),
            "[tool choice] a: expected arguments whose names its form of calls can spell, got 'x "
            "y'");
  for (const auto& [format, key] : {std::pair("qwen3-coder", "x>"), std::pair("glm", "x<"),
                                    std::pair("olmo3", "1x"), std::pair("gemma4", "x:")}) {
    EXPECT_NE(error_of(format, with_key(key)), "") << format;
    EXPECT_EQ(error_of(format, with_key("x")), "") << format;
  }
  EXPECT_NE(error_of("glm", R"([{"name": "a", "parameters": {"properties": {"x":
                                 {"enum": ["</arg_value>"]}}}}])"),
            "");
  // Keywords that could require arguments which a form with single arguments would leave out.
  const auto with = [](const std::string& parameters) {
    return R"([{"name": "a", "parameters": )" + parameters + "}]";
  };
  EXPECT_EQ(error_of("lfm2", with(R"({"anyOf": [{"required": ["x"]}]})")),
            "[tool choice] a: expected parameters by properties, required and additionalProperties "
            "alone, for the model's form of calls writes arguments one by one, got 'anyOf'");
  for (const char* const keyword : {"oneOf", "allOf", "patternProperties", "not"}) {
    const std::string tool = with(R"({"properties": {}, ")" + std::string(keyword) + R"(": {}})");
    EXPECT_NE(error_of("glm", tool), "") << keyword;
    EXPECT_EQ(error_of("hermes", tool), "") << keyword;  // the reader of the schema refuses it
  }
  EXPECT_NE(error_of("glm", with(R"({"$ref": "#/$defs/P", "required": ["x"], "$defs": {"P":
                                    {"properties": {"x": {}}}}})")),
            "");
  EXPECT_EQ(error_of("gemma4", with(R"({"required": ["x"], "properties": {"y": {}},
                                       "additionalProperties": false})")),
            "[tool choice] a: expected required arguments that its properties name, got 'x'");
  EXPECT_EQ(error_of("gemma4", with(R"({"title": "T", "$schema": "s", "x-y": 1, "type": "object",
                                       "properties": {"y": {}}, "additionalProperties": false})")),
            "");
  EXPECT_THROW(make_tool_grammar(format_named("hermes"), tools(), {.name = "c"}), Error);
  EXPECT_THROW(make_tool_grammar(format_named("hermes"), ToolSet(), {}), Error);
}

// Reasoning is any text without its closing marker, then the marker; the rest is the answer.
TEST(ToolGrammar, LetsReasoningComeFirst) {
  ReplyFormat format;
  EXPECT_EQ(gbnf_of_reasoning(format, false), "");
  format.reasoning = {.begin = "<think>", .end = "</think>"};
  const auto answer = Grammar::from_regex("A|<B>");
  const TextsOf begun(
      *Grammar::sequence(*Grammar::from_gbnf(gbnf_of_reasoning(format, true)), *answer)
           ->compiled());
  const TextsOf free(
      *Grammar::sequence(*Grammar::from_gbnf(gbnf_of_reasoning(format, false)), *answer)
           ->compiled());
  for (const std::string thought : {"", "a", "<", "<<", "</", "</</", "</think", "</thin<",
                                    "<</t</", "x</thinker> y\n", "é<"}) {
    const std::string text = thought + "</think>";
    for (const std::string end : {"A", "\n\nA", "<B>"}) {
      EXPECT_TRUE(begun.has(text + end)) << text + end;
      EXPECT_FALSE(begun.has(thought + end)) << thought + end;
      EXPECT_TRUE(free.has("<think>" + text + end)) << text + end;
      EXPECT_FALSE(free.has(text + end)) << text + end;
    }
    EXPECT_FALSE(begun.has(text + "x</think>A")) << text;  // the marker ends it
    EXPECT_FALSE(begun.has(text)) << text;
  }
  EXPECT_TRUE(free.has("A"));
  format.reasoning.end = "<<end>";
  EXPECT_THROW(gbnf_of_reasoning(format, true), Error);
}

}  // namespace
}  // namespace outrider
