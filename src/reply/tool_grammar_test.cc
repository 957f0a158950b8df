#include "reply/tool_grammar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

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
      gbnf_of(make_tool_grammar(format_named("hermes"), tools(), {.parallel = true})),
      R"gbnf(root ::= "<tool_call>" "\n" call ( "\n" "</tool_call>" "\n" "<tool_call>" "\n" call )* "\n" "</tool_call>"
call ::= call-0 | call-1
call-0 ::= "{\"name\": \"a\", \"arguments\": " arguments-0 "}"
call-1 ::= "{\"name\": \"b-2\", \"arguments\": " arguments-1 "}"
)gbnf");
  EXPECT_EQ(gbnf_of(make_tool_grammar(format_named("llama"), tools(), {.name = "a"})),
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

TEST(ToolGrammar, SaysWhatItCannot) {
  for (const char* name : {"none", "qwen3-coder", "gemma", "functiongemma", "gemma4"}) {
    try {
      make_tool_grammar(format_named(name), tools());
      FAIL() << name;
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(),
                   (std::string("[tool choice] form of calls \"") + name +
                    "\": expected one with arguments in JSON, to hold the model to a call, got one "
                    "without")
                       .c_str());
    }
  }
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
