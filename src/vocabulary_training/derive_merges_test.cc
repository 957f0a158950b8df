// SPDX-License-Identifier: Apache-2.0
#include "vocabulary_training/derive_merges.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <string>
#include <utility>

#include "tokenizer/texts/utf8.h"

namespace outrider {
namespace {

using Ids = std::vector<TokenId>;
using Words = std::vector<std::string>;
using Deriver = std::function<std::vector<MergeRule>(std::span<const LearntPiece>)>;

// Pieces of text, each with a lower score than the one before.
std::vector<LearntPiece> ranked(const Words& texts) {
  std::vector<LearntPiece> pieces;
  for (const std::string& text : texts) {
    pieces.push_back({text, PieceKind::kText, -static_cast<double>(pieces.size())});
  }
  return pieces;
}

Words show(std::span<const LearntPiece> pieces, std::span<const MergeRule> merges) {
  const auto text = [pieces](TokenId id) { return pieces[static_cast<std::size_t>(id)].text; };
  Words shown;
  for (const MergeRule& rule : merges) {
    EXPECT_EQ(text(rule.left) + text(rule.right), text(rule.result));
    shown.push_back(text(rule.left) + " " + text(rule.right));
  }
  return shown;
}

Words merges_of(const Words& texts) {
  const std::vector<LearntPiece> pieces = ranked(texts);
  return show(pieces, derive_merges(pieces));
}

TEST(DeriveMerges, EverySplitInPiecesStandsWhereItsPieceDoes) {
  EXPECT_EQ(merges_of({"he", "th", "the", "t", "h", "e"}), (Words{"h e", "t h", "t he", "th e"}));
  // A piece learnt after the whole counts as well.
  EXPECT_EQ(merges_of({"he", "the", "th", "t", "h", "e"}), (Words{"h e", "t he", "th e", "t h"}));
  EXPECT_EQ(merges_of({"\xE2\x96\x81\xC3\xBC", "\xE2\x96\x81", "\xC3\xBC"}),
            (Words{"\xE2\x96\x81 \xC3\xBC"}));
  EXPECT_EQ(merges_of({"abc", "a", "b", "c"}), Words{});  // no split has two pieces
}

TEST(DeriveMerges, ScoresCountAndNotTheOrderOfIds) {
  std::vector<LearntPiece> pieces = ranked({"ab", "bc", "a", "b", "c"});
  pieces[0].score = -1;
  pieces[1].score = 0;
  EXPECT_EQ(show(pieces, derive_merges(pieces)), (Words{"b c", "a b"}));
}

TEST(DeriveMerges, BytesAndSpecialTokensNeverCome) {
  std::vector<LearntPiece> pieces = ranked({"<s>", "<0x41>", "s>", "<", "<0", "x41>", "s", ">"});
  pieces[0].kind = PieceKind::kSpecial;
  pieces[1].kind = PieceKind::kByte;
  EXPECT_EQ(show(pieces, derive_merges(pieces)), (Words{"s >"}));
}

// Texts of up to six letters, each joined from two others, in any order. This is harder than
// training's results, where a piece comes after its halves and mostly has one split.
Words random_pieces(std::mt19937& random, unsigned n_letters, std::size_t n_pieces) {
  Words texts;
  for (unsigned letter = 0; letter < n_letters; ++letter) {
    texts.emplace_back(1, static_cast<char>('a' + letter));
  }
  while (texts.size() < n_pieces) {
    const std::string whole = texts[random() % texts.size()] + texts[random() % texts.size()];
    if (whole.size() > 6 || std::find(texts.begin(), texts.end(), whole) != texts.end()) continue;
    texts.push_back(whole);
  }
  std::shuffle(texts.begin(), texts.end(), random);
  return texts;
}

std::string random_text(std::mt19937& random, std::size_t n, unsigned n_letters) {
  std::string text;
  while (text.size() < n) text.push_back(static_cast<char>('a' + random() % n_letters));
  return text;
}

struct Comparison {
  int n_words = 0;
  int n_different = 0;
};

// Vocabularies of two and three letters, where most pieces overlap themselves. Words of the same
// letters are encoded by score (which bpe_test.cc compares with the definition) and by merges.
Comparison compare(const Deriver& derive) {
  Comparison comparison;
  std::mt19937 random(3);
  for (int round = 0; round < 60; ++round) {
    const unsigned n_letters = 2 + round % 2;
    const Words texts = random_pieces(random, n_letters, 8 + round % 12);
    const std::vector<LearntPiece> pieces = ranked(texts);
    std::vector<TokenEntry> entries;
    std::vector<double> scores;
    for (const LearntPiece& piece : pieces) {
      entries.push_back({piece.text, true, true, false});
      scores.push_back(piece.score);
    }
    const Vocabulary vocabulary(std::move(entries), "test");
    const Bpe by_score = Bpe::by_score(vocabulary, scores, {});
    const Bpe by_rank = Bpe::by_rank(vocabulary, derive(pieces), {});
    Bpe::Scratch scratch;
    for (int word = 0; word < 500; ++word) {
      const std::string text = random_text(random, 2 + random() % 40, n_letters);
      Ids expected;
      Ids ids;
      by_score.encode(text, vocabulary, scratch, expected);
      by_rank.encode(text, vocabulary, scratch, ids);
      ++comparison.n_words;
      comparison.n_different += ids != expected;
    }
  }
  return comparison;
}

TEST(DeriveMerges, MergeAsScoresDo) {
  const Comparison comparison = compare(derive_merges);
  EXPECT_EQ(comparison.n_words, 30000);
  EXPECT_EQ(comparison.n_different, 0);
}

// The header's argument: the order of one piece's pairs does not matter.
TEST(DeriveMerges, APiecesPairsMayStandInAnyOrder) {
  std::mt19937 random(7);
  const Comparison comparison = compare([&random](std::span<const LearntPiece> pieces) {
    std::vector<MergeRule> merges = derive_merges(pieces);
    for (auto begin = merges.begin(); begin != merges.end();) {
      const auto end = std::find_if(begin, merges.end(), [begin](const MergeRule& rule) {
        return rule.result != begin->result;
      });
      std::shuffle(begin, end, random);
      begin = end;
    }
    return merges;
  });
  EXPECT_EQ(comparison.n_different, 0);
}

// Must be noticed: a piece with just one of its pairs, and pairs in the order of their halves.
TEST(DeriveMerges, FewerOrMisplacedPairsAreNotEnough) {
  const Comparison one_each = compare([](std::span<const LearntPiece> pieces) {
    std::vector<MergeRule> merges = derive_merges(pieces);
    const auto end =
        std::unique(merges.begin(), merges.end(),
                    [](const MergeRule& a, const MergeRule& b) { return a.result == b.result; });
    merges.erase(end, merges.end());
    return merges;
  });
  EXPECT_GT(one_each.n_different, 1000);
  const Comparison by_halves = compare([](std::span<const LearntPiece> pieces) {
    std::vector<MergeRule> merges = derive_merges(pieces);
    std::stable_sort(merges.begin(), merges.end(), [](const MergeRule& a, const MergeRule& b) {
      return std::max(a.left, a.right) < std::max(b.left, b.right);
    });
    return merges;
  });
  EXPECT_GT(by_halves.n_different, 1000);
}

}  // namespace
}  // namespace outrider
