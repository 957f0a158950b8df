// JSON Schema as grammars: what is written is valid, what is not supported is named.
#include "grammar/json_schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/limits.h"
#include "grammar/texts_of.h"
#include "outrider/error.h"

namespace outrider {
namespace {

using ::testing::HasSubstr;

std::vector<std::string> test_schemas() {
  std::ifstream file(OUTRIDER_SOURCE_DIR "/tests/golden/json_schemas.jsonl");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::string schema_error(std::string_view text) {
  try {
    read_json_schema(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// The shortest text from a state to where it may end.
std::string shortest_rest(ByteAutomaton& automaton, int state) {
  struct Step {
    int state;
    std::size_t before;
    char byte;
  };
  std::vector<Step> steps = {{state, 0, 0}};
  std::set<int> seen = {state};
  for (std::size_t i = 0; i < steps.size(); ++i) {
    automaton.allow_steps(kMostMaskSteps);
    if (automaton.accepts(steps[i].state)) {
      std::string rest;
      for (std::size_t at = i; at != 0; at = steps[at].before) rest += steps[at].byte;
      return {rest.rbegin(), rest.rend()};
    }
    for (int byte = 0; byte < 256; ++byte) {
      const int next = automaton.step(steps[i].state, static_cast<std::uint8_t>(byte));
      if (next < 0 || !seen.insert(next).second) continue;
      steps.push_back({next, i, static_cast<char>(byte)});
    }
  }
  ADD_FAILURE() << "a state from which no text ends";
  return "";
}

// A text of the language at random; after some bytes, the shortest way to its end.
std::string random_text(const TextsOf& texts, std::mt19937& random) {
  constexpr std::size_t kLong = 80;
  ByteAutomaton& automaton = texts.automaton();
  int state = automaton.start();
  std::string text;
  for (;;) {
    automaton.allow_steps(kMostMaskSteps);
    std::string bytes;
    for (int byte = 0; byte < 256; ++byte) {
      if (automaton.step(state, static_cast<std::uint8_t>(byte)) >= 0) {
        bytes += static_cast<char>(byte);
      }
    }
    if (automaton.accepts(state) && (bytes.empty() || random() % 3 == 0)) return text;
    if (text.size() > kLong || bytes.empty()) return text + shortest_rest(automaton, state);
    char next = bytes[random() % bytes.size()];
    // Letters outnumber all else.
    const std::size_t sign = bytes.find_first_of("\"\\{}[]:,");
    if (random() % 4 == 0 && sign != std::string::npos) next = bytes[sign];
    text += next;
    state = automaton.step(state, static_cast<std::uint8_t>(next));
  }
}

void count_keywords(const nlohmann::json& schema, std::set<std::string>& names) {
  if (schema.is_object()) {
    for (const auto& [name, value] : schema.items()) {
      names.insert(name);
      count_keywords(value, names);
    }
  } else if (schema.is_array()) {
    for (const auto& part : schema) count_keywords(part, names);
  }
}

TEST(JsonSchema, EveryKeywordIsTested) {
  std::map<std::string, int> n_schemas;
  const std::vector<std::string> schemas = test_schemas();
  EXPECT_GE(schemas.size(), 200U);
  for (const std::string& text : schemas) {
    std::set<std::string> names;
    count_keywords(nlohmann::json::parse(text), names);
    for (const std::string& name : names) ++n_schemas[name];
  }
  for (const char* const name : {"type",
                                 "enum",
                                 "const",
                                 "nullable",
                                 "properties",
                                 "required",
                                 "additionalProperties",
                                 "items",
                                 "prefixItems",
                                 "minItems",
                                 "maxItems",
                                 "uniqueItems",
                                 "minLength",
                                 "maxLength",
                                 "pattern",
                                 "format",
                                 "minimum",
                                 "maximum",
                                 "exclusiveMinimum",
                                 "exclusiveMaximum",
                                 "anyOf",
                                 "oneOf",
                                 "allOf",
                                 "$ref",
                                 "$defs"}) {
    EXPECT_GE(n_schemas[name], 5) << name;
  }
}

// By Python's jsonschema where it is installed; as JSON, always.
TEST(JsonSchema, WhatIsWrittenAtRandomIsValid) {
  const std::filesystem::path lines =
      std::filesystem::temp_directory_path() /
      ("outrider_json_schema_test." + std::to_string(std::random_device()()));
  std::ofstream file(lines);
  std::mt19937 random(7);
  for (const std::string& schema : test_schemas()) {
    SCOPED_TRACE(schema);
    const TextsOf texts(read_json_schema(schema));
    for (int i = 0; i < 25; ++i) {
      const std::string text = random_text(texts, random);
      ASSERT_TRUE(nlohmann::json::accept(text)) << text;
      file << nlohmann::json{{"schema", nlohmann::json::parse(schema)}, {"text", text}}.dump()
           << '\n';
    }
  }
  file.close();
  const std::string command =
      "python3 " OUTRIDER_SOURCE_DIR "/tests/golden/validate_json.py < " + lines.string() + " 2>&1";
  FILE* const pipe = popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string output;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) output += static_cast<char>(c);
  const int status = pclose(pipe);
  std::filesystem::remove(lines);
  if (status == 77 << 8 || status == 127 << 8) GTEST_SKIP() << output;
  EXPECT_EQ(status, 0) << output;
}

struct Example {
  const char* schema;
  std::vector<const char*> texts;
  std::vector<const char*> others;
};

TEST(JsonSchema, TextsAreThoseThatAreDescribed) {
  const Example examples[] = {
      {R"({"type":"integer"})", {"0", "-1", "12"}, {"-0", "01", "1.0", "1e3", "", "-", " 1"}},
      {R"({"type":"number"})",
       {"0", "-1.50", "1e3", "2.5E-07", "-0.0"},
       {"01", ".5", "1.", "1e", "+1"}},
      {R"({"type":"boolean"})", {"true", "false"}, {"True", "tru", "truee"}},
      {R"({"type":"string"})",
       {R"("")", R"("a\n\u0041\ud83d\ude00/\/")", "\"\xC3\xBC\""},
       {R"("\ud83d")", R"("\ude00")", R"("\x")", "\"\n\"", "\"a", "\"\xC3\""}},
      {R"({"type":"string","minLength":2,"maxLength":3})",
       {R"("ab")", "\"\xC3\xBC\xC3\xBC\xC3\xBC\"", R"("\n\\")", R"("\ud83d\ude00a")"},
       {R"("a")", R"("abcd")", R"("\ud83d\ude00")"}},
      {R"({"type":"string","pattern":"^a.c$"})",
       {R"("abc")", R"("a\"c")"},
       {R"("ac")", R"("a\nc")", R"("xabc")"}},
      {R"({"type":"string","pattern":"b"})",
       {R"("b")", R"("abc")", R"("\nb\\")"},
       {R"("")", R"("a")"}},
      {R"({"type":"string","format":"date"})",
       {R"("2024-02-29")", R"("0001-01-01")", R"("2000-02-29")", R"("1999-12-31")"},
       {R"("2023-02-29")", R"("1900-02-29")", R"("2024-02-30")", R"("2024-04-31")",
        R"("0000-01-01")", R"("2024-13-01")", R"("2024-1-01")"}},
      {R"({"type":"string","format":"date-time"})",
       {R"("2024-02-29T23:59:59Z")", R"("2024-01-01T00:00:00.25+05:30")"},
       {R"("2024-02-29T24:00:00Z")", R"("2024-02-29T23:59:60Z")", R"("2024-02-29 23:59:59Z")",
        R"("2024-02-29T23:59:59")"}},
      {R"({"type":"string","format":"uuid"})",
       {R"("123e4567-e89b-12d3-a456-426614174000")"},
       {R"("123e4567e89b12d3a456426614174000")"}},
      {R"({"type":"string","format":"ipv4"})",
       {R"("0.0.0.0")", R"("255.19.200.1")"},
       {R"("256.1.1.1")", R"("1.2.3")", R"("01.2.3.4")"}},
      {R"({"type":"integer","minimum":-12,"maximum":105})",
       {"-12", "-9", "0", "99", "100", "105"},
       {"-13", "106", "-20", "1000", "-0"}},
      {R"({"type":"integer","minimum":95})",
       {"95", "100", "999999999999999999"},
       {"94", "9", "-100"}},
      {R"({"type":"integer","exclusiveMinimum":3,"exclusiveMaximum":5})", {"4"}, {"3", "5"}},
      {R"({"type":"number","minimum":0,"maximum":1})",
       {"0", "0.5", "1", "1.000", "0.0"},
       {"1.01", "-0.5", "2", "1e0", "-0"}},
      {R"({"type":"number","exclusiveMinimum":0})", {"0.1", "3", "0.001"}, {"0", "0.0", "-1"}},
      {R"({"type":"number","exclusiveMaximum":-2})", {"-2.5", "-2.01", "-3"}, {"-2", "-2.0", "-1"}},
      {R"({"enum":["a",1,null,{"b":[]}]})",
       {R"("a")", "1", "null", R"({"b":[]})"},
       {"a", R"({"b": []})", "2"}},
      {R"({"type":"array","items":{"type":"integer"},"minItems":1,"maxItems":3})",
       {"[1]", "[1, 2,3]", "[\n  1,\n  2\n]"},
       {"[]", "[1,2,3,4]", "[1 ,2]", "[1,  2]", "[1,]"}},
      {R"({"type":"array","prefixItems":[{"const":1},{"const":2}],"items":{"const":3},"minItems":1})",
       {"[1]", "[1,2]", "[1,2,3,3]"},
       {"[]", "[2]", "[1,3]"}},
      {R"({"type":"array","prefixItems":[{"const":1},{"const":2}],"items":false})",
       {"[]", "[ ]", "[1]", "[1,2]"},
       {"[1,2,3]"}},
      {R"({"type":"array","prefixItems":[{"const":1},{"const":2},{"const":3}],"maxItems":2})",
       {"[]", "[1,2]"},
       {"[1,2,3]"}},
      {R"({"type":"object","properties":{"a":{"const":1},"b":{"const":2},"c":{"const":3}},"required":["b"]})",
       {R"({"b":2})", R"({"a":1,"b":2})", R"({ "a": 1, "b": 2, "c": 3 })", R"({"b":2,"c":3})"},
       {"{}", R"({"a":1})", R"({"b":2,"a":1})", R"({"b":2,"b":2})", R"({"b":2,"d":0})",
        R"({"b":2,})"}},
      {R"({"type":"object","properties":{"a":{"const":1}}})",
       {"{}", "{ }", R"({"a":1})"},
       {R"({"x":1})"}},
      {R"({"type":"object","properties":{"ab":{"const":1}},"additionalProperties":{"const":2}})",
       {R"({"ab":1})", R"({"a":2})", R"({"abc":2})", R"({"ab":1,"":2})", R"({"b":2,"ac":2})"},
       {R"({"ab":2})", R"({"x":2,"ab":2})", R"({"\u0061b":2})"}},
      {R"({"type":"object"})", {"{}", R"({"a":[{}],"b":null})"}, {"[]", R"({"a"})"}},
      {R"({"type":"object","required":["k"]})", {R"({"k":[]})"}, {"{}", R"({"k":1,"l":2})"}},
      {R"({"type":"string","nullable":true})", {"null", R"("a")"}, {"1"}},
      {R"({"properties":{"a":{"const":1}}})", {R"({"a":1})"}, {"1"}},
      {R"({"$defs":{"l":{"type":"array","items":{"$ref":"#/$defs/l"}}},"$ref":"#/$defs/l"})",
       {"[]", "[[],[[]]]"},
       {"[1]"}},
      {R"({"allOf":[{"type":"object","properties":{"a":{"const":1}}},{"additionalProperties":false}]})",
       {"{}"},
       {R"({"a":1})"}},
  };
  for (const Example& example : examples) {
    SCOPED_TRACE(example.schema);
    const TextsOf texts(read_json_schema(example.schema));
    for (const char* const text : example.texts) EXPECT_TRUE(texts.has(text)) << text;
    for (const char* const text : example.others) EXPECT_FALSE(texts.has(text)) << text;
  }
}

TEST(JsonSchema, IntegersBetweenAllBounds) {
  for (int least = -130; least <= 130; least += 13) {
    for (int most = least; most <= 130; most += 17) {
      const TextsOf texts(
          read_json_schema("{\"type\":\"integer\",\"minimum\":" + std::to_string(least) +
                           ",\"maximum\":" + std::to_string(most) + "}"));
      for (int value = -1200; value <= 1200; ++value) {
        ASSERT_EQ(texts.has(std::to_string(value)), least <= value && value <= most)
            << value << " in " << least << ".." << most;
      }
    }
  }
}

TEST(JsonSchema, KeywordsThatAreNotSupportedAreNamed) {
  for (const char* const name : {"not",
                                 "if",
                                 "then",
                                 "else",
                                 "patternProperties",
                                 "propertyNames",
                                 "minProperties",
                                 "maxProperties",
                                 "dependentRequired",
                                 "dependentSchemas",
                                 "dependencies",
                                 "contains",
                                 "minContains",
                                 "maxContains",
                                 "unevaluatedItems",
                                 "unevaluatedProperties",
                                 "multipleOf",
                                 "contentEncoding",
                                 "contentMediaType",
                                 "additionalItems",
                                 "$anchor",
                                 "$dynamicRef",
                                 "x-anything"}) {
    const std::string inner = std::string("{\"type\":\"object\",\"") + name + "\":1}";
    EXPECT_EQ(schema_error("{\"type\":\"array\",\"items\":" + inner + "}"),
              std::string("[read JSON schema] #/items: expected a supported keyword, got '") +
                  name + "'");
  }
  EXPECT_THAT(schema_error(R"({"uniqueItems":true})"), HasSubstr("'uniqueItems'"));
}

TEST(JsonSchema, WhatCannotBeSaidIsRefused) {
  EXPECT_THAT(schema_error("{"), HasSubstr("expected JSON, got a mistake at byte"));
  EXPECT_THAT(schema_error("[]"), HasSubstr("#: expected an object"));
  EXPECT_THAT(schema_error(R"({"type":"text"})"), HasSubstr("#/type"));
  EXPECT_THAT(schema_error(R"({"minLength":-1})"), HasSubstr("#/minLength"));
  EXPECT_THAT(schema_error(R"({"items":[{}]})"), HasSubstr("prefixItems"));
  EXPECT_THAT(schema_error(R"({"exclusiveMinimum":true})"), HasSubstr("a number"));
  EXPECT_THAT(schema_error(R"({"type":"string","format":"email"})"), HasSubstr("one of date time"));
  EXPECT_THAT(schema_error(R"s({"type":"string","pattern":"(?=a)"})s"), HasSubstr("lookahead"));
  EXPECT_THAT(schema_error(R"({"type":"string","pattern":"a","maxLength":3})"),
              HasSubstr("'maxLength'"));
  EXPECT_THAT(schema_error(R"({"type":"string","pattern":"a","format":"date"})"),
              HasSubstr("both"));
  EXPECT_THAT(schema_error(R"({"type":"number","minimum":0.5})"), HasSubstr("#/minimum"));
  EXPECT_THAT(schema_error(R"({"enum":["a"],"minLength":3})"), HasSubstr("'minLength'"));
  EXPECT_THAT(schema_error(R"({"oneOf":[{"type":"integer"},{"type":"number"}]})"),
              HasSubstr("branches 0 and 1"));
  EXPECT_THAT(
      schema_error(
          R"({"oneOf":[{"properties":{"a":{"const":1}},"required":["a"]},{"properties":{"a":{"const":2}},"required":["a"]}]})"),
      HasSubstr("exclude each other"));
  EXPECT_THAT(schema_error(R"({"$ref":"other.json"})"), HasSubstr("a place in the document"));
  EXPECT_THAT(schema_error(R"({"$ref":"#/$defs/none"})"), HasSubstr("a schema in the document"));
  EXPECT_THAT(
      schema_error(R"({"$defs":{"a":{"$ref":"#/$defs/a","type":"null"}},"$ref":"#/$defs/a"})"),
      HasSubstr("a circle"));
  EXPECT_THAT(schema_error(R"({"$ref":"#"})"), HasSubstr("a language with a text"));
  EXPECT_THAT(schema_error(R"({"allOf":[{"type":"string"},{"type":"null"}]})"),
              HasSubstr("a language with a text"));
  EXPECT_THAT(schema_error(R"({"allOf":[{"pattern":"a"},{"pattern":"b"}]})"),
              HasSubstr("one pattern"));
  EXPECT_THAT(schema_error(R"({"type":"object","required":["a"],"additionalProperties":false})"),
              HasSubstr("a language with a text"));
  std::string deep;
  for (int i = 0; i < 5000; ++i) deep += "{\"items\":";
  EXPECT_THAT(schema_error(deep), HasSubstr("levels"));
}

TEST(JsonSchema, LargeBoundsAndManyPropertiesStaySmall) {
  EXPECT_LT(read_json_schema(R"({"type":"string","maxLength":10000})").n_positions(), 200);
  EXPECT_LT(read_json_schema(
                R"({"type":"array","maxItems":100000,"items":{"type":"string","maxLength":10000}})")
                .n_positions(),
            300);
  std::string many = R"({"type":"object","properties":{)";
  for (int i = 0; i < 1000; ++i) {
    many += (i == 0 ? "" : ",") + ("\"p" + std::to_string(i)) + "\":{\"type\":\"null\"}";
  }
  EXPECT_LT(read_json_schema(many + "}}").n_positions(), 60'000);
  EXPECT_LT(read_json_schema(many + R"(},"additionalProperties":true})").n_positions(), 200'000);
}

TEST(JsonSchema, AnyObject) {
  const TextsOf texts(any_json_object());
  EXPECT_TRUE(texts.has(R"({"a": [1, {"b": null}], "c": "d"})"));
  EXPECT_FALSE(texts.has("[]"));
  EXPECT_FALSE(texts.has("{} "));
}

}  // namespace
}  // namespace outrider
