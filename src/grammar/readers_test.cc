// SPDX-License-Identifier: Apache-2.0
// GBNF and regular expressions: what is read, and how errors are reported.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "grammar/gbnf.h"
#include "grammar/limits.h"
#include "grammar/regex.h"
#include "grammar/texts_of.h"
#include "outrider/error.h"

namespace outrider {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

template <typename Read>
std::string error_of(const Read& read, std::string_view text) {
  try {
    read(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}
std::string gbnf_error(std::string_view text) {
  return error_of([](std::string_view gbnf) { return read_gbnf(gbnf); }, text);
}
std::string regex_error(std::string_view text) { return error_of(read_regex, text); }

TEST(Gbnf, ReadsAllThatIsDescribed) {
  const TextsOf texts(read_gbnf(R"(# a comment
root ::= greeting " " name+ tail?   # another
greeting ::= "h\x65llo" |
             "\u00FC" | "\U0001F600"
name ::= (
  [a-c]        # in groups, lines may end anywhere
  | [^a-z\]\x00-\x1F] {2,3}
)
tail ::= "\t\"\\\n\r" . | "" | [\-\^\[]{2}
)"));
  EXPECT_TRUE(texts.has("hello a"));
  EXPECT_TRUE(texts.has("\xC3\xBC abcABC"));
  EXPECT_TRUE(texts.has("\xF0\x9F\x98\x80 \xE2\x82\xAC\xE2\x82\xAC"));
  EXPECT_FALSE(texts.has("hello d"));
  EXPECT_FALSE(texts.has("hello A"));
  EXPECT_FALSE(texts.has("hello \xED\xA0\x80\xED\xA0\x80"));  // a surrogate is not a character
  EXPECT_TRUE(texts.has("hello a\t\"\\\n\r\xC3\xA9"));
  EXPECT_FALSE(texts.has("hello a\t\"\\\n\r\xC3"));
  EXPECT_TRUE(texts.has("hello a-["));
  EXPECT_FALSE(texts.has("hello "));
}

TEST(Gbnf, ErrorsNameLineAndColumn) {
  EXPECT_EQ(gbnf_error("root ::= \"a\"\nb = c\n"),
            "[read grammar] line 2, column 3: expected ::=, got '='");
  EXPECT_EQ(gbnf_error("root ::= \"\xC3\xA9\" b\n"),
            "[read grammar] line 1, column 14: expected a rule b to be defined, got none");
  EXPECT_EQ(gbnf_error("root ::= \"a\n\""),
            "[read grammar] line 1, column 12: expected a closing quote, got the end of the line");
  EXPECT_EQ(gbnf_error("x ::= \"a\"\n"),
            "[read grammar] line 2, column 1: expected a rule root, got none");
  EXPECT_THAT(gbnf_error("root ::= \"a\"\nroot ::= \"b\"\n"), HasSubstr("line 2, column 1"));
  EXPECT_THAT(gbnf_error("root ::= [b-a]"), HasSubstr("column 11: expected a range that grows"));
  EXPECT_THAT(gbnf_error("root ::= []"), HasSubstr("a class with a character"));
  EXPECT_THAT(gbnf_error("root ::= \"\\q\""), HasSubstr("a known escape, got \\q"));
  EXPECT_THAT(gbnf_error("root ::= \"\\uD800\""), HasSubstr("the number of a character"));
  EXPECT_THAT(gbnf_error("root ::= \"\\u12\""), HasSubstr("4 hexadecimal digits"));
  EXPECT_THAT(gbnf_error("root ::= (\"a\""), HasSubstr("expected ), got the end"));
  EXPECT_THAT(gbnf_error("root ::= *"), HasSubstr("something to repeat"));
  EXPECT_THAT(gbnf_error("root ::= \"a\"{3,2}"), HasSubstr("bounds that grow"));
  EXPECT_THAT(gbnf_error("root ::= \"a\"{3"), HasSubstr("expected }"));
  EXPECT_THAT(gbnf_error("root ::= \"a\"{99999999999}"), HasSubstr("at most 1000000000"));
  EXPECT_THAT(gbnf_error("root ::= \"a\" ) \"b\""), HasSubstr("the end of the rule"));
  EXPECT_THAT(gbnf_error("root ::= \xFF"), HasSubstr("UTF-8"));
  EXPECT_THAT(gbnf_error(""), HasSubstr("a rule root"));
}

TEST(Gbnf, LanguagesThatCannotBeMatchedAreRefused) {
  EXPECT_THAT(gbnf_error("root ::= root \"a\" | \"b\""),
              AllOf(HasSubstr("rule root"), HasSubstr("left recursion")));
  EXPECT_THAT(gbnf_error("root ::= x\nx ::= y? z\ny ::= \"b\"\nz ::= x \"c\" | \"d\"\n"),
              HasSubstr("left recursion"));
  EXPECT_THAT(gbnf_error("root ::= root"), HasSubstr("a language with a text"));
  EXPECT_THAT(gbnf_error("root ::= \"a\" root"), HasSubstr("none that ends"));
  // A rule that never ends is ignored if there are alternatives.
  const TextsOf texts(read_gbnf("root ::= \"a\" x | \"b\"\nx ::= \"c\" x\n"));
  EXPECT_TRUE(texts.has("b"));
  EXPECT_FALSE(texts.begins("a"));
}

TEST(Gbnf, LargeAndDeepTextsAreRefused) {
  std::string deep = "root ::= ";
  for (int i = 0; i < 100'000; ++i) deep += "(";
  EXPECT_THAT(gbnf_error(deep), HasSubstr("groups within groups"));
  EXPECT_THAT(gbnf_error(std::string(kLongestGrammar_bytes + 1, ' ')), HasSubstr("bytes"));
  std::string many = "root ::= \"a\"\n";
  for (int i = 0; i < 30'000; ++i) many += "r" + std::to_string(i) + " ::= \"a\"\n";
  EXPECT_THAT(gbnf_error(many), HasSubstr("at most 20000"));
  // A chain of rules of maximal length, each called first in the one before.
  std::string chain = "root ::= r0\n";
  for (int i = 0; i < 19'000; ++i) {
    chain += "r" + std::to_string(i) + " ::= r" + std::to_string(i + 1) + " \"x\"?\n";
  }
  const TextsOf texts(read_gbnf(chain + "r19000 ::= \"a\"\n"));
  EXPECT_FALSE(texts.begins(""));
  EXPECT_TRUE(texts.automaton().met_nesting_limit());
}

TEST(Regex, ReadsAllThatIsDescribed) {
  const auto has = [](std::string_view expression, std::string_view text) {
    return TextsOf(read_regex(expression)).has(text);
  };
  EXPECT_TRUE(has("^ab$", "ab"));
  EXPECT_TRUE(has("a|^b$|c", "b"));
  EXPECT_TRUE(has(R"(\d{3}-\w+\s?[\d.]*\.)", "123-a_9 4.."));
  EXPECT_TRUE(has(R"([^\s\d]+)", "ab\xC3\xA9"));
  EXPECT_FALSE(has(R"(\S+)", "a\xC2\xA0"));
  // Neither white space nor its complement, where readers differ.
  for (const char* const expression : {R"(\s)", R"(\S)", R"([\s])", R"([^\s])", R"([^\S])"}) {
    for (const char* const text : {"\x1E", "\xC2\x85", "\xEF\xBB\xBF"}) {
      EXPECT_FALSE(has(expression, text)) << expression;
    }
  }
  EXPECT_TRUE(has(R"([^\S]{2})", " \xE3\x80\x80"));
  EXPECT_FALSE(has(".", "\n"));
  EXPECT_FALSE(has(".", "\xE2\x80\xA8"));
  EXPECT_TRUE(has("(?:a|(?<name>b)|(?P<other>c))+?", "abc"));
  EXPECT_TRUE(has(R"(\x41\u00e9\u{1F600}\t\/\-\0)",
                  std::string_view("A\xC3\xA9\xF0\x9F\x98\x80\t/-\0", 11)));
  EXPECT_TRUE(has(R"([\]\-a\x62])", "b"));
  EXPECT_TRUE(has("[a-]", "-"));
  EXPECT_TRUE(has(R"([\b])", "\b"));
  EXPECT_TRUE(has("", ""));
  EXPECT_TRUE(has("a||b", ""));
  EXPECT_FALSE(has("a{2,}", "a"));
  EXPECT_TRUE(has("a{2,}", "aaaaa"));
}

TEST(Regex, WhatIsNotSupportedIsNamed) {
  EXPECT_THAT(regex_error("(a)\\1"), AllOf(HasSubstr("column 4"), HasSubstr("back reference")));
  EXPECT_THAT(regex_error("(?<x>a)\\k<x>"), HasSubstr("back reference"));
  EXPECT_THAT(regex_error("(?=a)"), HasSubstr("lookahead"));
  EXPECT_THAT(regex_error("(?!a)"), HasSubstr("lookahead"));
  EXPECT_THAT(regex_error("(?<=a)"), HasSubstr("lookbehind"));
  EXPECT_THAT(regex_error("(?<!a)"), HasSubstr("lookbehind"));
  EXPECT_THAT(regex_error("\\bword"), HasSubstr("word boundary"));
  EXPECT_THAT(regex_error("\\p{L}"), HasSubstr("Unicode property"));
  EXPECT_THAT(regex_error("(?i)a"), HasSubstr("flags"));
  EXPECT_THAT(regex_error("a++"), HasSubstr("possessive"));
  EXPECT_THAT(regex_error("a^"), HasSubstr("^ at the beginning alone"));
  EXPECT_THAT(regex_error("(a$)"), HasSubstr("$ at the end alone"));
  EXPECT_THAT(regex_error("a$b"), HasSubstr("nothing behind $"));
  EXPECT_THAT(regex_error("a)"), HasSubstr("parenthesis"));
  EXPECT_THAT(regex_error("(a"), HasSubstr("expected )"));
  EXPECT_THAT(regex_error("*"), HasSubstr("something to repeat"));
  EXPECT_THAT(regex_error("a**"), HasSubstr("something to repeat"));
  EXPECT_THAT(regex_error("\\q"), HasSubstr("a known escape"));
  EXPECT_THAT(regex_error("[z-a]"), HasSubstr("a range that grows"));
  EXPECT_THAT(regex_error("[\\d-z]"), HasSubstr("a range that grows"));
  EXPECT_THAT(regex_error("[a"), HasSubstr("expected ]"));
  EXPECT_THAT(regex_error("[^\\s\\S]"), HasSubstr("a class with a character"));
  EXPECT_THAT(regex_error("\\"), HasSubstr("a known escape"));
  EXPECT_THAT(regex_error("a}"), HasSubstr("an escape, got }"));
}

}  // namespace
}  // namespace outrider
