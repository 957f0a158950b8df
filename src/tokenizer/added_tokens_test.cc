// SPDX-License-Identifier: Apache-2.0
// Compares the search for added tokens with its definition at every position, and counts its work.
#include "tokenizer/added_tokens.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tokenizer/test_tokenizers.h"
#include "tokenizer/texts/utf8.h"

namespace outrider {
namespace {

using test::Json;
using Spans = std::vector<AddedTokens::Span>;

std::string show(const Spans& spans) {
  std::string shown;
  for (const auto& [range, id, spelling] : spans) {
    shown += std::to_string(range.begin) + "-" + std::to_string(range.end);
    if (id != kNoToken) {
      shown += "=" + std::to_string(id) + "(" + std::to_string(spelling.begin) + "-" +
               std::to_string(spelling.end) + ")";
    }
    shown += " ";
  }
  return shown;
}

// From left to right, takes at each position the longest token, and the first of equal ones.
Spans split_by_definition(const std::vector<AddedToken>& tokens, std::string_view text,
                          const std::vector<TextRange>& literal) {
  const auto is_literal = [&](std::size_t begin, std::size_t end) {
    return std::any_of(literal.begin(), literal.end(), [&](const TextRange& range) {
      return std::max(range.begin, begin) < std::min(range.end, end);
    });
  };
  const auto is_space_at = [&](std::size_t at) {
    return is_white_space(code_point_at(text, at).value);
  };
  Spans spans;
  std::size_t done = 0;
  for (std::size_t at = 0; at < text.size();) {
    const AddedToken* best = nullptr;
    for (const AddedToken& token : tokens) {
      const std::string& content = token.content;
      if (text.substr(at).starts_with(content) && !is_literal(at, at + content.size()) &&
          content.size() > (best == nullptr ? 0 : best->content.size())) {
        best = &token;
      }
    }
    if (best == nullptr) {
      ++at;
      continue;
    }
    const TextRange spelling{at, at + best->content.size()};
    at = spelling.end;
    if (spelling.begin < done) continue;
    const auto is_word = [&](std::size_t i) {
      return is_word_character(code_point_at(text, i).value);
    };
    const std::string_view before = text.substr(0, spelling.begin);
    if (best->single_word && ((!before.empty() && is_word(last_character(before))) ||
                              (at < text.size() && is_word(at)))) {
      continue;
    }
    TextRange range = spelling;
    while (best->lstrip && range.begin > done) {
      const std::size_t last = last_character(text.substr(0, range.begin));
      if (!is_space_at(last)) break;
      range.begin = last;
    }
    while (best->rstrip && range.end < text.size() && is_space_at(range.end)) {
      range.end += static_cast<std::size_t>(code_point_at(text, range.end).n_bytes);
    }
    if (done < range.begin) spans.push_back({{done, range.begin}, kNoToken, {}});
    spans.push_back({range, best->id, spelling});
    done = range.end;
  }
  if (done < text.size()) spans.push_back({{done, text.size()}, kNoToken, {}});
  return spans;
}

AddedTokens finished(const std::vector<AddedToken>& tokens) {
  AddedTokens added;
  for (const AddedToken& token : tokens) added.add(token);
  added.finish();
  return added;
}

// Few different characters, including a blank and one of two bytes.
std::string random_text(std::mt19937& random, std::size_t n) {
  constexpr std::string_view kCharacters[] = {"a", "b", "c", " ", "\u00e9"};
  std::string text;
  while (n-- > 0) text += kCharacters[random() % std::size(kCharacters)];
  return text;
}

TEST(AddedTokens, FindsWhatTheDefinitionFinds) {
  std::mt19937 random(1);
  AddedTokens::Scratch scratch;
  Spans spans;
  std::size_t n_tokens = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<AddedToken> tokens;
    for (std::size_t i = random() % 8; i > 0; --i) {
      tokens.push_back({.id = static_cast<TokenId>(tokens.size()),
                        .content = random_text(random, random() % 6),
                        .single_word = random() % 4 == 0,
                        .lstrip = random() % 4 == 0,
                        .rstrip = random() % 4 == 0});
    }
    const std::string text = random_text(random, random() % 60);
    std::vector<TextRange> literal;
    for (std::size_t at = 0; random() % 3 != 0;) {
      const std::size_t begin = std::min(at + random() % 9, text.size());
      at = std::min(begin + random() % 5, text.size());
      literal.push_back({begin, at});
    }
    finished(tokens).split(text, literal, scratch, spans);
    const Spans expected = split_by_definition(tokens, text, literal);
    EXPECT_EQ(show(spans), show(expected)) << text;
    n_tokens += static_cast<std::size_t>(
        std::count_if(spans.begin(), spans.end(), [](const auto& s) { return s.id != kNoToken; }));
  }
  EXPECT_GT(n_tokens, 5000u);
}

// A long text is searched in parts; tokens and literal ranges cross their boundaries.
TEST(AddedTokens, FindsTokensOverTheEndsOfParts) {
  std::mt19937 random(2);
  AddedTokens::Scratch scratch;
  Spans spans;
  for (int round = 0; round < 20; ++round) {
    std::string text;
    while (text.size() < 50000) {
      text += std::string(random() % 5000, 'x') + random_text(random, random() % 4000);
    }
    std::vector<AddedToken> tokens = {{.id = 0, .content = "abca", .rstrip = true},
                                      {.id = 1, .content = " c", .lstrip = true},
                                      {.id = 2, .content = "bb"},
                                      {.id = 3, .content = std::string(3000, 'x')}};
    if (round % 2 == 1) tokens.push_back({.id = 4, .content = text.substr(0, 20000)});
    std::vector<TextRange> literal;
    for (std::size_t at = random() % 3000; at + 3000 < text.size(); at += random() % 9000) {
      literal.push_back({at, at + random() % 3000});
      at = literal.back().end;
    }
    finished(tokens).split(text, literal, scratch, spans);
    EXPECT_EQ(show(spans), show(split_by_definition(tokens, text, literal))) << round;
  }
}

// Bytes read and backward steps: each byte is read at most twice, with at most one backward step
// each.
TEST(AddedTokens, WorkIsLinearInTheText) {
  constexpr std::size_t kBytes = 1000000;
  // "ab", "aab", ...: at every position of "aaa..." all of them begin.
  std::vector<AddedToken> towers;
  for (int i = 1; i <= 1000; ++i) {
    towers.push_back({.id = i, .content = std::string(static_cast<std::size_t>(i), 'a') + "b"});
  }
  std::vector<AddedToken> many;
  for (int i = 0; i < 60000; ++i) {
    many.push_back({.id = i, .content = "a" + std::to_string(i * 7919 % 60000) + "z"});
  }
  std::string numbers;
  while (numbers.size() < kBytes) numbers += "a" + std::to_string(numbers.size() % 100000);
  const std::vector<AddedToken> one = {{.id = 0, .content = std::string(100000, 'a') + "b"}};
  const std::pair<const std::vector<AddedToken>&, std::string> cases[] = {
      {towers, std::string(kBytes, 'a')},
      {many, std::string(kBytes, 'a')},
      {many, numbers},
      {one, std::string(kBytes, 'a')},
      {towers, "b" + std::string(kBytes, 'a') + "b"}};
  for (const auto& [tokens, text] : cases) {
    AddedTokens::Scratch scratch;
    Spans spans;
    finished(tokens).split(text, {}, scratch, spans);
    EXPECT_LE(scratch.n_steps, 4 * text.size());
  }
}

// Sixty thousand added tokens of either kind, and a text with all of them: each is found.
TEST(AddedTokens, SixtyThousand) {
  constexpr int kTokens = 60000;
  Json document = test::byte_level_document(test::byte_vocabulary(), Json::array());
  document["normalizer"] = {{"type", "Lowercase"}};
  std::string text;
  std::vector<TokenId> expected;
  std::vector<TextRange> places;
  for (int i = 0; i < kTokens; ++i) {
    const std::string content = "<extra-" + std::to_string(i) + (i % 2 == 0 ? ">" : "!");
    document["added_tokens"].push_back(
        {{"id", 256 + i}, {"content", content}, {"normalized", i % 2 == 0}, {"special", false}});
    places.push_back({text.size() + 1, text.size() + 1 + content.size()});
    text += " " + content;
    expected.push_back(' ');
    expected.push_back(256 + i);
  }
  const auto tokenizer = test::make_tokenizer(document);
  EXPECT_TRUE(tokenizer->encode(text, false) == expected);
  EXPECT_TRUE(tokenizer->added_tokens_in(text) == places);
  // If every other one is literal, its bytes appear instead.
  std::vector<TextRange> literal;
  std::vector<TokenId> ids;
  for (std::size_t i = 0; i < places.size(); ++i) {
    ids.push_back(' ');
    if (i % 4 < 2) {
      literal.push_back(places[i]);
      for (std::size_t at = places[i].begin; at < places[i].end; ++at) ids.push_back(text[at]);
    } else {
      ids.push_back(256 + static_cast<TokenId>(i));
    }
  }
  EXPECT_TRUE(tokenizer->encode_with_literals(text, false, literal) == ids);
}

}  // namespace
}  // namespace outrider
