// SPDX-License-Identifier: Apache-2.0
// Grammars composed of others: sequences, alternatives, schemas within GBNF, and tokens of their
// own.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "grammar/gbnf.h"
#include "grammar/matcher.h"
#include "grammar/regex.h"
#include "grammar/schema/json_schema.h"
#include "grammar/schema/schema_reference.h"
#include "grammar/texts_of.h"
#include "outrider/error.h"

namespace outrider {
namespace {

std::vector<std::string> all_texts(int n) {
  std::vector<std::string> texts = {""};
  for (std::size_t i = 0; texts[i].size() < static_cast<std::size_t>(n); ++i) {
    for (const char letter : {'a', 'b'}) texts.push_back(texts[i] + letter);
  }
  return texts;
}

// Compares with the same language as one regular expression.
TEST(GrammarComposition, IsASequenceOrAChoice) {
  const std::vector<std::string> forms = {"a*", "(ab|b)*", "b{2,3}", "a?b", "(a|bb)+a"};
  for (const std::string& one : forms) {
    for (const std::string& other : forms) {
      const auto a = read_regex(one);
      const auto b = read_regex(other);
      const TextsOf sequence(CompiledGrammar::sequence(a, b));
      const TextsOf choice(CompiledGrammar::choice(a, b));
      const TextsOf both(CompiledGrammar::sequence(CompiledGrammar::choice(a, b), a));
      const TextsOf sequence_again(read_regex("(" + one + ")(" + other + ")"));
      const TextsOf choice_again(read_regex("(" + one + ")|(" + other + ")"));
      const TextsOf both_again(read_regex("((" + one + ")|(" + other + "))(" + one + ")"));
      for (const std::string& text : all_texts(7)) {
        ASSERT_EQ(sequence.has(text), sequence_again.has(text)) << one << " " << other << text;
        ASSERT_EQ(sequence.begins(text), sequence_again.begins(text)) << text;
        ASSERT_EQ(choice.has(text), choice_again.has(text)) << one << " " << other << text;
        ASSERT_EQ(choice.begins(text), choice_again.begins(text)) << text;
        ASSERT_EQ(both.has(text), both_again.has(text)) << one << " " << other << text;
      }
    }
  }
}

TEST(GrammarComposition, HasSchemasForRules) {
  const std::vector<GrammarSchema> schemas = {{"x", R"({"type": "integer"})"},
                                              {"y", R"({"enum": ["p", "q"]})"},
                                              {"unused", R"({"type": "boolean"})"}};
  const TextsOf texts(read_gbnf("root ::= \"<\" x \">\" | y y", schemas));
  EXPECT_TRUE(texts.has("<12>"));
  EXPECT_TRUE(texts.has("\"p\"\"q\""));
  EXPECT_FALSE(texts.has("<\"p\">"));
  EXPECT_FALSE(texts.has("\"p\""));
  EXPECT_THROW(read_gbnf("root ::= x\nx ::= \"a\"", schemas), Error);  // twice
  EXPECT_THROW(read_gbnf("root ::= z", schemas), Error);               // no such rule
  const std::vector<GrammarSchema> broken = {{"x", R"({"not": {}})"}};
  EXPECT_THROW(read_gbnf("root ::= x", broken), Error);
}

// Parts of one document that refer to it and to its other parts.
TEST(GrammarComposition, HasPartsOfASchemaForRules) {
  const std::vector<GrammarSchema> schemas = {
      {"whole",
       R"({"type": "object", "$defs": {"n": {"enum": [1, 2]}, "bad": {"not": {}}},
           "required": ["a%/~"],
           "additionalProperties": false, "properties": {"a%/~": {"$ref": "#/%24defs/n"},
           "self": {"$ref": "#"}, "own": {"$ref": "#/$defs/n", "$defs": {"n": {"enum": [3]}}}}})",
       {{"n", reference_of_member("#/properties", "a%/~")},
        {"self", "#/properties/self"},
        {"own", "#/properties/own"},
        {"unused", "#/properties/none"},
        {"missing", "#/properties/none"}}}};
  const TextsOf texts(read_gbnf("root ::= \"<\" n \">\" | self | \"[\" own \"]\"", schemas));
  EXPECT_TRUE(texts.has("<1>"));
  EXPECT_FALSE(texts.has("<3>"));
  EXPECT_TRUE(texts.has("[2]"));
  EXPECT_FALSE(texts.has("[3]"));
  EXPECT_TRUE(texts.has(R"({"a%/~": 2})"));
  EXPECT_TRUE(texts.has(R"({"a%/~": 2, "self": {"a%/~": 1}})"));
  EXPECT_FALSE(texts.has(R"({"self": {"a%/~": 1}})"));
  EXPECT_THROW(read_gbnf("root ::= missing", schemas), Error);
  EXPECT_THROW(read_gbnf("root ::= n\nn ::= \"a\"", schemas), Error);  // twice
  const std::vector<GrammarSchema> twice = {{"x", "true", {{"x", "#"}}}};
  EXPECT_THROW(read_gbnf("root ::= x", twice), Error);
}

// "<go>" as one token that is not in the trie, or as other tokens spell it.
TEST(GrammarComposition, SpellsByTokensOfItsOwn) {
  const std::vector<std::string> tokens = {"<", "go", ">", "a", "", ""};
  constexpr TokenId kGo = 4;
  constexpr TokenId kEnd = 5;
  const TokenTrie trie(tokens, std::vector<TokenId>{kEnd});
  const auto grammar =
      std::make_shared<const CompiledGrammar>(read_gbnf("root ::= \"<go>\" \"a\""));
  GrammarMatcher without(grammar, trie);
  EXPECT_FALSE(without.is_allowed(without.start(), kGo));
  GrammarMatcher matcher(grammar, trie, {{kGo, "<go>"}});
  const auto has = [&](int state, TokenId id) {
    const bool bit = (matcher.allowed(state)[0] >> id & 1) != 0;
    EXPECT_EQ(bit, matcher.is_allowed(state, id));
    return bit;
  };
  int state = matcher.start();
  EXPECT_TRUE(has(state, kGo));
  EXPECT_TRUE(has(state, 0));
  EXPECT_FALSE(has(state, 3));
  const int behind = matcher.advance(state, kGo);
  for (const TokenId id : {0, 1, 2}) state = matcher.advance(state, id);
  EXPECT_EQ(state, behind);
  EXPECT_FALSE(has(behind, kGo));
  EXPECT_TRUE(has(behind, 3));
  // A fresh matcher that replaces a full one knows the token as well.
  const std::shared_ptr<GrammarMatcher> fresh = matcher.next();
  EXPECT_TRUE(fresh->is_allowed(fresh->take_over(matcher, matcher.start()), kGo));
}

// Any tokens, except the end token if a form follows, up to `>`; at most three before it.
TEST(GrammarComposition, ReadsAnOpeningFirst) {
  const std::vector<std::string> tokens = {"a", "b", "", ""};
  constexpr TokenId kClose = 2;
  constexpr TokenId kEnd = 3;
  const TokenTrie trie(tokens, std::vector<TokenId>{kEnd});
  const auto form = std::make_shared<const CompiledGrammar>(read_gbnf("root ::= \"ab\""));
  for (const int most : {-1, 0, 1, 3}) {
    for (const bool has_form : {false, true}) {
      GrammarMatcher matcher(has_form ? form : nullptr, trie, {}, {kClose, most});
      const auto has = [&](int state, TokenId id) {
        const bool bit = (matcher.allowed(state)[0] >> id & 1) != 0;
        EXPECT_EQ(bit, matcher.advance(state, id) != GrammarMatcher::kNotAllowed);
        return bit;
      };
      int state = matcher.start();
      std::vector<TokenId> forced;
      for (int n = 0; n < (most < 0 ? 50 : most); ++n) {
        EXPECT_TRUE(has(state, 0) && has(state, 1) && has(state, kClose));
        EXPECT_EQ(has(state, kEnd), !has_form);
        EXPECT_EQ(matcher.complete(state), !has_form);
        state = matcher.advance(state, n % 2);
      }
      if (most >= 0) {
        EXPECT_FALSE(has(state, 0) || has(state, 1) || has(state, kEnd));
        matcher.forced(state, 3, forced);
        EXPECT_EQ(forced.front(), kClose);
      }
      EXPECT_TRUE(has(state, kClose));
      state = matcher.advance(state, kClose);
      EXPECT_EQ(matcher.is_free(state), !has_form);
      EXPECT_TRUE(has(state, 0));
      EXPECT_EQ(has(state, 1), !has_form);
      EXPECT_EQ(has(state, kClose), !has_form);
      EXPECT_EQ(has(state, kEnd), !has_form);
      state = matcher.advance(matcher.advance(state, 0), 1);
      EXPECT_TRUE(matcher.complete(state) && has(state, kEnd));
      // A fresh matcher continues from any of these states.
      for (const int from : {matcher.start(), state}) {
        const std::shared_ptr<GrammarMatcher> fresh = matcher.next();
        const int moved = fresh->take_over(matcher, from);
        EXPECT_EQ(fresh->allowed(moved)[0], matcher.allowed(from)[0]);
      }
    }
  }
}

}  // namespace
}  // namespace outrider
