// SPDX-License-Identifier: Apache-2.0
// Compares the matcher with brute-force recognisers, on vocabularies small enough for all texts.
//
// Mutants on which this layer's tests fail, each tried by hand: a call that forgets all callers but
// its first; a nullable rule not skipped at the call; counts clipped one too early, one more
// repetition, one fewer; a nullable body that is still counted; a last call that keeps its frame; a
// table of byte kinds by the first position alone; a trie search that continues below a dead byte;
// dead ends taken for valid paths.
#include "grammar/matcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <regex>
#include <string>
#include <vector>

#include "grammar/gbnf.h"
#include "grammar/limits.h"
#include "grammar/naive_grammar.h"
#include "grammar/regex.h"
#include "grammar/texts_of.h"
#include "outrider/error.h"

namespace outrider {
namespace {

using ::testing::HasSubstr;

// All texts over `letters` of at most n of them, the empty one first.
std::vector<std::string> all_texts(const std::string& letters, int n) {
  std::vector<std::string> texts = {""};
  std::size_t first = 0;
  for (int length = 1; length <= n; ++length) {
    const std::size_t end = texts.size();
    for (std::size_t i = first; i < end; ++i) {
      for (const char letter : letters) texts.push_back(texts[i] + letter);
    }
    first = end;
  }
  return texts;
}

// Tokens of one and several letters, one of them twice, and an end token.
const std::vector<std::string> kTokens = {"a",   "b",  "c",  "ab", "bca",
                                          "aaa", "cb", "ab", "",   "caab"};
constexpr TokenId kEndToken = 8;

bool has(std::span<const std::uint64_t> mask, TokenId id) {
  return (mask[static_cast<std::size_t>(id) / 64] >> (id % 64) & 1) != 0;
}

// For all token strings of few letters, compares the matcher's answer with whether some text of the
// language begins with them.
template <typename Matches, typename IsPrefix>
void expect_exact(GrammarMatcher& matcher, int state, const std::string& text, std::size_t reach,
                  const Matches& matches, const IsPrefix& is_prefix) {
  ASSERT_EQ(matcher.complete(state), matches(text)) << "'" << text << "'";
  std::vector<TokenId> allowed;
  for (TokenId id = 0; id < static_cast<TokenId>(kTokens.size()); ++id) {
    if (has(matcher.allowed(state), id)) allowed.push_back(id);
    const int next = matcher.advance(state, id);
    ASSERT_EQ(next != GrammarMatcher::kNotAllowed, has(matcher.allowed(state), id));
    if (id == kEndToken) {
      ASSERT_EQ(has(matcher.allowed(state), id), matches(text)) << "'" << text << "'";
      continue;
    }
    const std::string longer = text + kTokens[static_cast<std::size_t>(id)];
    if (longer.size() > reach) continue;
    ASSERT_EQ(next != GrammarMatcher::kNotAllowed, is_prefix(longer)) << "'" << longer << "'";
    if (next == GrammarMatcher::kNotAllowed) continue;
    expect_exact(matcher, next, longer, reach, matches, is_prefix);
    if (::testing::Test::HasFatalFailure()) return;
  }
  std::vector<TokenId> forced;
  matcher.forced(state, 1, forced);
  ASSERT_EQ(!forced.empty(), allowed.size() == 1);
  if (!forced.empty()) {
    ASSERT_EQ(forced[0], allowed[0]);
  }
}

TEST(Matcher, AgreesWithTryingEverythingOnRandomGrammars) {
  std::mt19937 random(1);
  int n_compared = 0;
  for (int round = 0; round < 2000; ++round) {
    NaiveGrammar naive = random_grammar(random);
    const std::string gbnf = naive.gbnf();
    std::shared_ptr<const CompiledGrammar> grammar;
    try {
      grammar = std::make_shared<const CompiledGrammar>(read_gbnf(gbnf));
    } catch (const Error& error) {
      // Some languages are empty, and nullable parts may call a rule too soon.
      if (naive.begins("")) {
        ASSERT_THAT(error.what(), HasSubstr("left recursion")) << gbnf;
      }
      continue;
    }
    const TokenTrie trie(kTokens, std::vector<TokenId>{kEndToken});
    GrammarMatcher matcher(grammar, trie);
    SCOPED_TRACE(gbnf);
    const auto matches = [&](const std::string& text) { return naive.matches(text); };
    const auto is_prefix = [&](const std::string& text) { return naive.begins(text); };
    expect_exact(matcher, matcher.start(), "", 5, matches, is_prefix);
    if (HasFatalFailure()) return;
    ++n_compared;
  }
  EXPECT_GT(n_compared, 1500);
}

TEST(Matcher, AgreesWithStdRegex) {
  const std::vector<std::string> texts = all_texts("abc", 7);
  const char* const expressions[] = {
      "a*",          "(ab|c)+",       "a{2,4}b?",        "(a|ab)(c|bc)*",  "[^b]*b",
      "(?:a|b){3}",  "(a{0,2}b){2,}", "((a|aa){0,3}c)*", "a?a?a?aaa",      "(a*)*b",
      "(a|b|ab)*ba", "[a-b]{1,}c",    "(a|){3}b",        "(ab?){2,3}c{2}", "(a{1,2}){2,3}b"};
  for (const char* const expression : expressions) {
    SCOPED_TRACE(expression);
    const std::regex regex(expression);
    const auto matches = [&](const std::string& text) { return std::regex_match(text, regex); };
    const auto is_prefix = [&](const std::string& text) {
      for (const std::string& rest : texts) {
        if (rest.size() <= 5 && matches(text + rest)) return true;
      }
      return false;
    };
    const TokenTrie trie(kTokens, std::vector<TokenId>{kEndToken});
    GrammarMatcher matcher(std::make_shared<const CompiledGrammar>(read_regex(expression)), trie);
    expect_exact(matcher, matcher.start(), "", 4, matches, is_prefix);
    if (HasFatalFailure()) return;
  }
}

std::string times(std::string_view part, int n) {
  std::string text;
  for (int i = 0; i < n; ++i) text += part;
  return text;
}

TEST(Matcher, CountsAreNotUnrolled) {
  const TextsOf texts(read_regex("[^x]{9999,10000}x"));
  EXPECT_FALSE(texts.has(times("\xC3\xA9", 9998) + "x"));
  EXPECT_TRUE(texts.has(times("\xC3\xA9", 9999) + "x"));
  EXPECT_TRUE(texts.has(times("a", 10000) + "x"));
  EXPECT_FALSE(texts.has(times("a", 10001) + "x"));
  const CompiledGrammar nested = read_regex("(((((a{1000}){1000}b){1000}){1000}){1000})*");
  EXPECT_LT(nested.n_positions(), 100);
}

TEST(Matcher, ListsByRecursionOnTheRightDoNotNest) {
  const TextsOf texts(
      read_gbnf("root ::= item rest\nrest ::= \"\" | \",\" item rest\nitem ::= [a-z]+\n"));
  EXPECT_TRUE(texts.has(times("ab,", 3 * kDeepestNesting) + "c"));
  EXPECT_LT(texts.automaton().n_states(), 20U);
  EXPECT_FALSE(texts.automaton().met_nesting_limit());
}

TEST(Matcher, NestingIsBounded) {
  const TextsOf texts(read_gbnf("root ::= \"(\" root \")\" | \"x\"\n"));
  const std::string deep = times("(", kDeepestNesting - 1);
  EXPECT_TRUE(texts.has(deep + "x" + times(")", kDeepestNesting - 1)));
  EXPECT_LT(texts.behind(times("(", 2 * kDeepestNesting)), 0);
  EXPECT_TRUE(texts.automaton().met_nesting_limit());
  EXPECT_EQ(texts.automaton().failure(), "");
}

TEST(Matcher, AmbiguousGrammarsStaySmall) {
  // There are as many ways to read a^n as binary trees with n leaves.
  const TextsOf texts(
      read_gbnf("root ::= \"a\" root root | \"a\" root | \"a\" | \"b\" root root\n"));
  EXPECT_TRUE(texts.has(times("a", 200)));
  EXPECT_LT(texts.automaton().n_frame_entries(), 200'000U);
}

TEST(Matcher, WhatIsTooAmbiguousFailsAndSaysSo) {
  const TextsOf texts(read_regex("((a|aa|aaa|aaaa){0,500000}){0,500000}"));
  EXPECT_LT(texts.behind(times("a", 100'000)), 0);
  EXPECT_THAT(texts.automaton().failure(), HasSubstr("ambiguity"));
  EXPECT_LT(texts.automaton().step(texts.automaton().start(), 'a' + 1), 0);
}

TEST(Matcher, AFreshOneGoesOnFromAState) {
  const auto grammar = std::make_shared<const CompiledGrammar>(
      read_gbnf("root ::= \"a\" root \"c\" | \"b\"{2,3}\n"));
  const TokenTrie trie(kTokens, std::vector<TokenId>{kEndToken});
  GrammarMatcher matcher(grammar, trie);
  for (const std::string& text : all_texts("abc", 6)) {
    int state = matcher.start();
    for (const char c : text) state = matcher.advance(state, c - 'a');
    GrammarMatcher fresh(grammar, trie);
    const int moved = fresh.take_over(matcher, state);
    ASSERT_EQ(fresh.complete(moved), matcher.complete(state));
    for (const std::string& rest : all_texts("abc", 3)) {
      int one = state;
      int other = moved;
      for (const char c : rest) {
        one = matcher.advance(one, c - 'a');
        other = fresh.advance(other, c - 'a');
      }
      ASSERT_EQ(one >= 0, other >= 0) << text << " " << rest;
      ASSERT_EQ(matcher.complete(one), fresh.complete(other));
    }
  }
}

// Counts far from their bounds share masks; near them, each token counts.
TEST(Matcher, MasksOfCountedRepetitionsAreExact) {
  std::vector<std::string> tokens;
  for (std::size_t n = 1; n <= 2 * kLongestShortToken_bytes; ++n) {
    tokens.emplace_back(n, 'a');
    tokens.push_back(std::string(n, 'a') + "b");
    tokens.push_back("b" + std::string(n, 'a'));
  }
  const TokenTrie trie(tokens, {});
  for (const char* const expression : {"a{30,60}b", "a{50,}b?", "(a{20,40}b){3,70}",
                                       "((a{0,40}b?){30,50}b){40}", "(a|aa){30,60}"}) {
    GrammarMatcher matcher(std::make_shared<const CompiledGrammar>(read_regex(expression)), trie);
    int state = matcher.start();
    for (int n = 0; n < 80 && state >= 0; ++n) {
      const std::span<const std::uint64_t> allowed = matcher.allowed(state);
      const std::vector<std::uint64_t> mask(allowed.begin(), allowed.end());
      for (TokenId id = 0; id < static_cast<TokenId>(tokens.size()); ++id) {
        ASSERT_EQ(has(mask, id), matcher.is_allowed(state, id))
            << expression << " behind " << n << " steps: " << tokens[static_cast<std::size_t>(id)];
      }
      const int next = matcher.advance(state, 0);
      state = next >= 0 ? next : matcher.advance(state, 2);
    }
  }
}

TEST(Matcher, ThoseOfGrammarsThatAreAskedForAgainAreShared) {
  const TokenTrie trie(kTokens, std::vector<TokenId>{kEndToken});
  std::vector<std::shared_ptr<const CompiledGrammar>> grammars;
  for (std::size_t i = 0; i <= kMaxMatchers; ++i) {
    grammars.push_back(std::make_shared<const CompiledGrammar>(read_regex("a*b")));
  }
  GrammarMatchers matchers;
  const std::shared_ptr<GrammarMatcher> first = matchers.of(grammars[0], trie);
  EXPECT_EQ(matchers.of(grammars[0], trie), first);
  for (std::size_t i = 1; i < kMaxMatchers; ++i) matchers.of(grammars[i], trie);
  EXPECT_EQ(matchers.of(grammars[0], trie), first);
  matchers.of(grammars[kMaxMatchers], trie);  // replaces the least recently requested one
  EXPECT_EQ(matchers.of(grammars[0], trie), first);
  const std::weak_ptr<const CompiledGrammar> forgotten = grammars[1];
  grammars[1] = nullptr;
  EXPECT_TRUE(forgotten.expired());
}

TEST(Matcher, AnOtherOpeningOrTokensOfItsOwnMakeAnOtherMatcher) {
  const TokenTrie trie(kTokens, std::vector<TokenId>{kEndToken});
  const auto grammar = std::make_shared<const CompiledGrammar>(read_regex("a*b"));
  const std::vector<SpelledToken> spelled = {{kEndToken, "a"}};
  GrammarMatchers matchers;
  const std::vector<std::shared_ptr<GrammarMatcher>> made = {
      matchers.of(grammar, trie), matchers.of(grammar, trie, spelled),
      matchers.of(grammar, trie, {}, {0, -1}), matchers.of(grammar, trie, {}, {0, 3}),
      matchers.of(nullptr, trie, {}, {0, 3})};
  for (std::size_t i = 0; i < made.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(made[i], made[j]) << i << " " << j;
  }
  EXPECT_EQ(matchers.of(grammar, trie, spelled), made[1]);
  EXPECT_EQ(matchers.of(grammar, trie, {}, {0, 3}), made[3]);
  EXPECT_EQ(matchers.of(nullptr, trie, {}, {0, 3}), made[4]);
}

TEST(Matcher, ALimitThatOneTextMeetsLetsTheOthersGoOn) {
  const TokenTrie trie(kTokens, std::vector<TokenId>{kEndToken});
  std::string many = "b(";
  for (int i = 0; i < 2000; ++i)
    many += "|a*" + std::string(1, static_cast<char>('a' + i % 3)) + "*";
  GrammarMatcher matcher(
      std::make_shared<const CompiledGrammar>(read_regex("a*|" + many + "){200000}")), trie);
  const int other = matcher.advance(matcher.start(), 0);
  int state = matcher.advance(matcher.start(), 1);
  for (int i = 0; i < 200 && state >= 0 && matcher.failure().empty(); ++i) {
    matcher.allowed(state);
    state = matcher.advance(state, 0);
  }
  EXPECT_THAT(matcher.failure(), HasSubstr("ambiguity"));
  EXPECT_TRUE(has(matcher.allowed(other), 0));
  EXPECT_GE(matcher.advance(other, 0), 0);
}

TEST(Matcher, BehindAnEndTokenComeEndTokensAlone) {
  const TokenTrie trie(kTokens, std::vector<TokenId>{kEndToken});
  GrammarMatcher matcher(std::make_shared<const CompiledGrammar>(read_regex("a*")), trie);
  const int ended = matcher.advance(matcher.start(), kEndToken);
  EXPECT_NE(ended, GrammarMatcher::kNotAllowed);
  EXPECT_TRUE(matcher.complete(ended));
  for (TokenId id = 0; id < static_cast<TokenId>(kTokens.size()); ++id) {
    EXPECT_EQ(has(matcher.allowed(ended), id), id == kEndToken);
    EXPECT_EQ(matcher.is_allowed(ended, id), id == kEndToken);
  }
  EXPECT_FALSE(matcher.is_allowed(GrammarMatcher::kNotAllowed, 0));
  EXPECT_EQ(matcher.allowed(GrammarMatcher::kNotAllowed)[0], 0U);
}

TEST(Matcher, CertainBytesEndWhereTheTextMayOrThereIsAChoice) {
  const TokenTrie trie(kTokens, std::vector<TokenId>{kEndToken});
  GrammarMatcher matcher(std::make_shared<const CompiledGrammar>(read_regex("abc(aab|aac)?")),
                         trie);
  std::string text;
  matcher.certain_text(matcher.start(), 100, text);
  EXPECT_EQ(text, "abc");
  matcher.certain_text(matcher.start(), 2, text);
  EXPECT_EQ(text, "ab");
}

TEST(Matcher, MasksThatGaveWayAreTheSameAgain) {
  const TokenTrie trie(kTokens, std::vector<TokenId>{kEndToken});
  GrammarMatcher matcher(std::make_shared<const CompiledGrammar>(read_regex("(abc){0,2000}")),
                         trie);
  std::vector<std::vector<std::uint64_t>> masks;
  std::vector<int> states = {matcher.start()};
  for (int i = 0; i < 3 * static_cast<int>(kMaxMasks); ++i) {
    const auto mask = matcher.allowed(states.back());
    masks.emplace_back(mask.begin(), mask.end());
    states.push_back(matcher.advance(states.back(), i % 3));
  }
  for (std::size_t i = 0; i < masks.size(); ++i) {
    const auto mask = matcher.allowed(states[i]);
    ASSERT_TRUE(std::equal(mask.begin(), mask.end(), masks[i].begin(), masks[i].end()));
  }
}

}  // namespace
}  // namespace outrider
