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

// What the grammar describes is read as the calls it stands for, in every form that has one.
TEST(ToolGrammar, DescribesWhatTheParserReads) {
  for (const char* name :
       {"hermes", "smollm", "llama", "mistral", "mistral-named", "deepseek", "deepseek-plain",
        "granite", "phi", "command", "functionary", "firefunction"}) {
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
    // Markers are those that the engine is asked to show.
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

// What ends a message to a function ends the reply, so that there is one, whatever is asked for.
TEST(ToolGrammar, OfMessagesIsOneCall) {
  const ReplyFormat format = format_named("harmony");
  const ToolGrammar grammar = make_tool_grammar(format, tools(), {.parallel = true});
  EXPECT_FALSE(grammar.several);
  const ReplyParserOptions options{.tools = std::make_shared<const ToolSet>(tools())};
  EXPECT_EQ(trace_reply(format, options, spelled(grammar.calls[1])).lines,
            R"(call: b-2 {"x": [1, "}"]})");
}

// Tools whose arguments are of every kind, some required, one by a reference.
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

// Every text of the grammar is calls and nothing else, with arguments of the schemas' kinds.
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

// What templates write of earlier calls is in the grammar, and what the parser does not read as
// calls of these tools is not.
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
       {"<tool_call>\n<function=weather>\n<parameter=city>\nRome\n</parameter>\n</function>\n"
        "</tool_call>",
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
        "<tool_call>now\n</tool_call>\n<tool_call>now\n</tool_call>"},
       {"<tool_call>weather\n</tool_call>",
        "<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Rome</arg_value>\n"
        "<arg_key>days</arg_key>\n<arg_value>\"3\"</arg_value>\n</tool_call>",
        "<tool_call>now"}},
      {"lfm2",
       {R"(<|tool_call_start|>[weather(exact=true, city="Rome", days=3, range={"from": 1.5})]<|tool_call_end|>)",
        R"(<|tool_call_start|>[now(), note(), note(any=[1], maybe=null)]<|tool_call_end|>)"},
       {R"(<|tool_call_start|>[weather(city="Rome")]<|tool_call_end|>)",
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

// Calls of one tool by name, and one call where several are not wanted.
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

// Behind reasoning the next message begins, as in a reply that nobody holds to a form.
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
  // Names that would end where they stand.
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
  EXPECT_THROW(make_tool_grammar(format_named("hermes"), tools(), {.name = "c"}), Error);
  EXPECT_THROW(make_tool_grammar(format_named("hermes"), ToolSet(), {}), Error);
}

// Reasoning is any text without its closing marker, and then that; what follows is the answer's.
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
