// SPDX-License-Identifier: Apache-2.0
// JSON Schema as grammars: generated texts are valid, and unsupported keywords are named.
#include "grammar/schema/json_schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/random_text.h"
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
                                 "multipleOf",
                                 "propertyNames",
                                 "anyOf",
                                 "oneOf",
                                 "allOf",
                                 "$ref",
                                 "$defs"}) {
    EXPECT_GE(n_schemas[name], 5) << name;
  }
}

// Validated with Python's jsonschema if installed; always parsed as JSON.
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
      {R"({"type":"number","minimum":0.25,"maximum":0.75})",
       {"0.25", "0.5", "0.75", "0.750", "0.30000000000001"},
       {"0.2499", "0.751", "0", "1", "0.3e0"}},
      {R"({"type":"number","exclusiveMaximum":4})",
       {"3.99999999999999", "-0.5"},
       {"4", "4.0", "3.9999999999999999"}},
      {R"({"type":"number","minimum":1e-7,"maximum":1.5e3})",
       {"0.0000001", "1500", "1499.9"},
       {"0.00000009", "1500.1"}},
      {R"({"type":"number","multipleOf":0.25})",
       {"0", "1", "0.25", "-7.50", "7.5", "12345.75"},
       {"0.3", "0.125", "1.000", "-0"}},
      {R"({"type":"number","multipleOf":0.01,"minimum":0})",
       {"0.1", "19.99", "3"},
       {"0.001", "-1"}},
      {R"({"type":"integer","multipleOf":0.4})", {"0", "2", "-14"}, {"1", "0.4"}},
      {R"({"multipleOf":3})", {"0", "-3", "999999999999999"}, {"1", "3.0"}},
      {R"({"enum":["a","bcd",7,2.5],"minLength":2,"maximum":3})",
       {R"("bcd")", "2.5"},
       {R"("a")", "7"}},
      {R"({"type":"string","format":"email"})",
       {R"("ada.l+x@mail.example.org")"},
       {R"("ada@local")", R"("a..b@c.de")", R"("@c.de")"}},
      {R"({"type":"string","format":"uri"})",
       {R"("https://a.example:8080/b/c?d=e#f")", R"("mailto:a@b.de")", R"("http://[::1]/")",
        R"("file:///etc/x")"},
       {R"("a.example/b")", R"("http://a b")", R"("http://")"}},
      {R"({"type":"string","format":"ipv6"})",
       {R"("::")", R"("::1")", R"("1::")", R"("2001:db8::8a2e:370:7334")", R"("1:2:3:4:5:6:7:8")"},
       {R"("1:2:3:4:5:6:7")", R"("1::2::3")", R"(":1")", R"("1:2:3:4:5:6:7:8:9")"}},
      {R"({"type":"string","format":"hostname"})", {R"("a-b.example")"}, {R"("-a")", R"("a..b")"}},
      {R"({"type":"string","format":"duration"})",
       {R"("P1Y2M3DT4H5M6S")", R"("PT30M")", R"("P2W")"},
       {R"("P")", R"("PT")", R"("P1Y3D")", R"("1D")"}},
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
      {R"({"$ref":"#/$defs/a","nullable":true,"$defs":{"a":{"type":"integer"}}})",
       {"null", "1"},
       {R"("a")"}},
      {R"({"anyOf":[{"type":"integer"},{"enum":["x"]}],"nullable":true})",
       {"null", "1", R"("x")"},
       {R"("a")"}},
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

TEST(JsonSchema, MultiplesOfAllNumbersBetweenBounds) {
  for (const int multiple : {1, 2, 3, 5, 7, 10, 12, 25, 60, 97, 100, 128, 1000}) {
    for (const int least : {-1000, -7, 0, 1, 84}) {
      const TextsOf texts(read_json_schema(nlohmann::json{
          {"type", "integer"},
          {"multipleOf", multiple},
          {"minimum", least}}.dump()));
      const TextsOf tenths(read_json_schema(nlohmann::json{
          {"type", "number"},
          {"multipleOf", multiple / 10.0},
          {"exclusiveMaximum", least / 10.0}}.dump()));
      for (int value = -1100; value <= 1100; ++value) {
        const bool is_multiple = value % multiple == 0;
        ASSERT_EQ(texts.has(std::to_string(value)), is_multiple && value >= least)
            << value << " from " << least << " by " << multiple;
        if (value == 0) continue;
        std::string text = std::to_string(std::abs(value));
        text = (value < 0 ? "-" : "") + std::string(text.size() == 1 ? "0" : "") + text;
        text.insert(text.size() - 1, ".");
        if (multiple % 10 == 0 && text.back() == '0') text.resize(text.size() - 2);
        ASSERT_EQ(tenths.has(text), is_multiple && value < least)
            << text << " up to " << least << " tenths by " << multiple;
      }
    }
  }
}

TEST(JsonSchema, DecimalsBetweenAllBounds) {
  const auto text_of = [](int hundredths) {
    const std::string digits = std::to_string(std::abs(hundredths));
    std::string text = std::string(digits.size() < 3 ? 3 - digits.size() : 0, '0') + digits;
    text.insert(text.size() - 2, ".");
    return (hundredths < 0 ? "-" : "") + text;
  };
  for (int least = -1105; least <= 300; least += 155) {
    for (int most = least; most <= 1200; most += 173) {
      const TextsOf all(read_json_schema("{\"type\":\"number\",\"minimum\":" + text_of(least) +
                                         ",\"maximum\":" + text_of(most) + "}"));
      // An empty range has no text, which is an Error.
      const TextsOf inner(
          read_json_schema("{\"type\":\"number\",\"exclusiveMinimum\":" + text_of(least) +
                           ",\"exclusiveMaximum\":" + text_of(most + 1) + "}"));
      for (int value = -1300; value <= 1300; ++value) {
        if (value == 0) continue;
        ASSERT_EQ(all.has(text_of(value)), least <= value && value <= most)
            << value << " in " << least << ".." << most;
        ASSERT_EQ(inner.has(text_of(value)), least < value && value <= most)
            << value << " within " << least << ".." << most + 1;
      }
    }
  }
}

// References and combinations that expand to far more than their length.
TEST(JsonSchema, SchemasThatUnfoldWithoutEndAreRefused) {
  using nlohmann::json;
  const auto ref = [](const std::string& name) { return json{{"$ref", "#/$defs/" + name}}; };
  const auto both = [&ref](const std::string& a, const std::string& b) {
    return json{{"type", "object"}, {"properties", {{"x", {{"allOf", {ref(a), ref(b)}}}}}}};
  };
  const json grows = {{"$defs", {{"a", both("a", "b")}, {"b", both("b", "a")}}},
                      {"allOf", {ref("a"), ref("b")}}};
  EXPECT_THAT(schema_error(grows.dump()), HasSubstr("fewer references and combinations"));
  json values = json::array();
  for (int i = 0; i < 900; ++i) values.push_back({{"enum", {i}}});
  json many = {{"$defs", {{"a", {{"anyOf", values}}}}}, {"allOf", json::array()}};
  for (int i = 0; i < 100; ++i) many["allOf"].push_back(ref("a"));
  EXPECT_THAT(schema_error(many.dump()), HasSubstr("fewer references and combinations"));
}

// As many as fit into a schema; the time grows less than quadratically.
TEST(JsonSchema, ManyNamesAndValues) {
  using nlohmann::json;
  json names = json::array();
  json values = json::array();
  for (int i = 0; i < 60'000; ++i) names.push_back("n" + std::to_string(i));
  for (int i = 0; i < 20'000; ++i) values.push_back(i);
  EXPECT_THAT(schema_error(json{{"type", "object"}, {"required", names}}.dump()),
              HasSubstr("rules"));
  const json both = {{"enum", values}};
  EXPECT_EQ(schema_error(json{{"allOf", {both, both}}}.dump()), "");
  json prefix = json::array();
  for (int i = 0; i < 5000; ++i) prefix.push_back({{"const", i}});
  EXPECT_EQ(schema_error(json{{"prefixItems", prefix}}.dump()), "");
}

TEST(JsonSchema, LongNames) {
  const std::string name(100'000, 'a');
  const TextsOf texts(read_json_schema(R"({"type":"object","properties":{")" + name +
                                       R"(":true},"additionalProperties":{"const":1}})"));
  EXPECT_TRUE(texts.has("{\"" + name + "\":0}"));
  EXPECT_TRUE(texts.has("{\"" + name.substr(0, 200) + "\":1}"));
  EXPECT_FALSE(texts.has("{\"" + name.substr(0, 300) + "\":1}"));
  EXPECT_TRUE(texts.has("{\"" + name.substr(0, 200) + "b\":1}"));
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
  for (const char* const name :
       {"not", "if", "then", "else", "patternProperties", "minProperties", "maxProperties",
        "dependentRequired", "dependentSchemas", "dependencies", "contains", "minContains",
        "maxContains", "unevaluatedItems", "unevaluatedProperties", "additionalItems", "$anchor",
        "$dynamicRef", "minLenght"}) {
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
  EXPECT_THAT(schema_error(R"({"type":"string","format":"iri"})"), HasSubstr("one of date time"));
  EXPECT_THAT(schema_error(R"s({"type":"string","pattern":"(?=a)"})s"), HasSubstr("lookahead"));
  EXPECT_THAT(schema_error(R"({"type":"string","pattern":"a","maxLength":3})"),
              HasSubstr("'maxLength'"));
  EXPECT_THAT(schema_error(R"({"type":"string","pattern":"a","format":"date"})"),
              HasSubstr("both"));
  EXPECT_THAT(schema_error(R"({"type":"integer","multipleOf":0})"), HasSubstr("#/multipleOf"));
  EXPECT_THAT(schema_error(R"({"type":"integer","multipleOf":99991})"),
              HasSubstr("#/multipleOf: expected a number with fewer remainders, got 99991"));
  EXPECT_THAT(schema_error(R"({"type":"number","multipleOf":1e-10})"), HasSubstr("#/multipleOf"));
  EXPECT_THAT(schema_error(R"({"allOf":[{"multipleOf":2},{"multipleOf":3}]})"),
              HasSubstr("one multipleOf"));
  EXPECT_THAT(schema_error(R"({"propertyNames":{"minLength":2}})"), HasSubstr("#/propertyNames"));
  EXPECT_THAT(schema_error(R"({"enum":["a"],"pattern":"b"})"), HasSubstr("'pattern'"));
  EXPECT_THAT(schema_error(R"({"const":123456789012345678901234567890})"), HasSubstr("below 1e18"));
  EXPECT_THAT(schema_error(R"({"oneOf":[{"type":"integer"},{"type":"number"}]})"),
              HasSubstr("branches 0 and 1"));
  EXPECT_THAT(
      schema_error(
          R"({"oneOf":[{"properties":{"a":{"const":1}},"required":["a"]},{"properties":{"a":{"const":2}},"required":["a"]}]})"),
      HasSubstr("exclude each other"));
  EXPECT_THAT(schema_error(R"({"$ref":"other.json"})"), HasSubstr("a schema in the document"));
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
