// SPDX-License-Identifier: Apache-2.0
// The suffix automaton against brute force, on random and on periodic texts.
#include "speculate/drafters/lookup/suffix_automaton.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <span>
#include <vector>

namespace outrider {
namespace {

using Tokens = std::vector<TokenId>;

// The ends of the string's occurrences in the text, ascending.
std::vector<int> ends_of(const Tokens& text, std::span<const TokenId> string) {
  std::vector<int> ends;
  for (auto at = text.begin();; ++at) {
    at = std::search(at, text.end(), string.begin(), string.end());
    if (at == text.end()) return ends;
    ends.push_back(static_cast<int>(at - text.begin()) + static_cast<int>(string.size()) - 1);
  }
}

Tokens random_text(int n, int vocabulary, std::mt19937& random) {
  Tokens text;
  while (static_cast<int>(text.size()) < n) {
    if (!text.empty() && random() % 4 == 0) {  // a copy, sometimes overlapping itself
      std::size_t at = random() % text.size();
      for (std::size_t left = random() % 12; left > 0; --left) text.push_back(text[at++]);
    } else {
      text.push_back(static_cast<TokenId>(random() % static_cast<unsigned>(vocabulary)));
    }
  }
  text.resize(static_cast<std::size_t>(n));
  return text;
}

// Follows every string from the root: a path exists if and only if the string occurs, with the
// right count.
void expect_right(const SuffixAutomaton& automaton, const Tokens& text, int order) {
  for (std::size_t begin = 0; begin < text.size(); ++begin) {
    int state = SuffixAutomaton::kRoot;
    for (std::size_t end = begin; end < std::min(text.size(), begin + 8); ++end) {
      state = automaton.next(state, text[end]);
      ASSERT_NE(state, SuffixAutomaton::kNoState);
      const std::span<const TokenId> string(text.data() + begin, end - begin + 1);
      const std::vector<int> ends = ends_of(text, string);
      const SuffixAutomaton::State& found = automaton.state(state);
      ASSERT_EQ(found.first_end, ends.front());
      ASSERT_GE(found.length, static_cast<int>(string.size()));
      ASSERT_LT(automaton.state(found.link).length, static_cast<int>(string.size()));
      if (static_cast<int>(string.size()) > order) continue;
      ASSERT_EQ(found.n_occurrences, static_cast<int>(ends.size()));
      ASSERT_EQ(found.last_end, ends.back());
      ASSERT_EQ(found.previous_end, ends.size() > 1 ? ends[ends.size() - 2] : -1);
    }
  }
}

TEST(SuffixAutomaton, KnowsEveryStringItsPlacesAndItsNumber) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 60; ++trial) {
    const Tokens text = random_text(1 + static_cast<int>(random() % 120),
                                    1 + static_cast<int>(random() % 4), random);
    for (const int order : {0, 1, 3, 8}) {
      SuffixAutomaton automaton(order);
      for (const TokenId token : text) automaton.append(token);
      expect_right(automaton, text, order);
      EXPECT_LE(automaton.n_states(), 2 * automaton.n_tokens());
      // Strings that do not occur are not found.
      Tokens other = random_text(6, 4, random);
      int state = SuffixAutomaton::kRoot;
      for (std::size_t n = 0; n < other.size() && state != SuffixAutomaton::kNoState; ++n) {
        state = automaton.next(state, other[n]);
        EXPECT_EQ(state != SuffixAutomaton::kNoState,
                  !ends_of(text, std::span(other).first(n + 1)).empty());
      }
    }
  }
}

// The text's own suffix, and matches of another text, token by token while both grow.
TEST(SuffixAutomaton, FollowsTheLongestMatch) {
  std::mt19937 random(2);
  for (int trial = 0; trial < 40; ++trial) {
    const Tokens text = random_text(80, 2 + trial % 3, random);
    const Tokens other = random_text(60, 2 + trial % 3, random);
    for (const int longest : {1, 4, 1000}) {
      SuffixAutomaton automaton(longest);
      Tokens begun;
      for (const TokenId token : text) {
        automaton.append(token);
        begun.push_back(token);
        const SuffixAutomaton::Match& suffix = automaton.suffix();
        ASSERT_EQ(suffix.length, std::min(longest, automaton.n_tokens()));
        const auto ends =
            ends_of(begun, std::span(begun).last(static_cast<std::size_t>(suffix.length)));
        ASSERT_EQ(automaton.state(suffix.state).n_occurrences, static_cast<int>(ends.size()));
      }
      SuffixAutomaton::Match match;
      for (std::size_t n = 0; n < other.size(); ++n) {
        automaton.advance(match, other[n], longest);
        const std::span<const TokenId> seen = std::span(other).first(n + 1);
        const auto length = static_cast<std::size_t>(match.length);
        if (length > 0) {
          ASSERT_EQ(automaton.state(match.state).first_end, ends_of(text, seen.last(length))[0]);
        } else {
          ASSERT_EQ(match.state, SuffixAutomaton::kRoot);
        }
        if (length < seen.size() && match.length < longest) {
          ASSERT_TRUE(ends_of(text, seen.last(length + 1)).empty());
        }
      }
    }
  }
}

// A text of one repeated token has as many suffixes as tokens. Adding a token visits only the
// states of strings up to the order.
TEST(SuffixAutomaton, PeriodicTexts) {
  SuffixAutomaton automaton(4);
  for (int n = 0; n < 100000; ++n) automaton.append(7);
  EXPECT_EQ(automaton.n_states(), 100001);
  EXPECT_EQ(automaton.suffix().length, 4);
  EXPECT_EQ(automaton.state(automaton.suffix().state).n_occurrences, 99997);
}

TEST(SuffixAutomaton, BordersAreTokensLikeAnyOther) {
  SuffixAutomaton automaton(3);
  for (const TokenId token : {1, 2, kNoToken, 2, 1, kNoToken}) automaton.append(token);
  SuffixAutomaton::Match match;
  for (const TokenId token : {2, 2}) automaton.advance(match, token, 3);
  EXPECT_EQ(match.length, 1);
  EXPECT_EQ(automaton.state(automaton.next(SuffixAutomaton::kRoot, kNoToken)).n_occurrences, 2);
}

}  // namespace
}  // namespace outrider
