// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/merging/bpe.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <random>

#include "tokenizer/test_tokenizers.h"

namespace outrider {
namespace {

using Ids = std::vector<TokenId>;

Vocabulary make_vocabulary(const std::vector<std::string>& pieces) {
  std::vector<TokenEntry> entries;
  for (const std::string& piece : pieces) entries.push_back({piece, true, true, false});
  return Vocabulary(std::move(entries), "test");
}

// The letters a to h, and random pieces of two to four of them, each with the merges of a random
// earlier split.
struct RandomModel {
  std::vector<std::string> pieces;
  std::vector<MergeRule> merges;
  explicit RandomModel(unsigned seed) {
    std::mt19937 random(seed);
    for (char c = 'a'; c <= 'h'; ++c) pieces.emplace_back(1, c);
    while (pieces.size() < 120) {
      const std::size_t left = random() % pieces.size();
      const std::size_t right = random() % pieces.size();
      const std::string whole = pieces[left] + pieces[right];
      if (whole.size() > 5 || std::find(pieces.begin(), pieces.end(), whole) != pieces.end()) {
        continue;
      }
      merges.push_back({static_cast<TokenId>(left), static_cast<TokenId>(right),
                        static_cast<TokenId>(pieces.size())});
      pieces.push_back(whole);
    }
    std::shuffle(merges.begin(), merges.end(), random);
  }
  std::string word(std::mt19937& random, std::size_t n) const {
    std::string text;
    for (std::size_t i = 0; i < n; ++i) text.push_back(static_cast<char>('a' + random() % 8));
    return text;
  }
};

// The definition: merge the best rank, leftmost first, until there is none.
Ids merge_by_definition(Ids symbols, const std::vector<MergeRule>& merges) {
  while (true) {
    std::size_t best_rank = merges.size();
    std::size_t best = 0;
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      for (std::size_t rank = 0; rank < best_rank; ++rank) {
        if (merges[rank].left == symbols[i] && merges[rank].right == symbols[i + 1]) {
          best_rank = rank;
          best = i;
        }
      }
    }
    if (best_rank == merges.size()) return symbols;
    symbols[best] = merges[best_rank].result;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

TEST(Bpe, MergesByDefinition) {
  std::mt19937 random(7);
  for (unsigned seed = 0; seed < 20; ++seed) {
    const RandomModel model(seed);
    const Vocabulary vocabulary = make_vocabulary(model.pieces);
    const Bpe bpe = Bpe::by_rank(vocabulary, model.merges, {});
    Bpe::Scratch scratch;
    for (const std::size_t n : {1, 2, 3, 5, 10, 23, 24, 25, 26, 60, 200}) {
      const std::string word = model.word(random, n);
      Ids letters;
      for (const char c : word) letters.push_back(c - 'a');
      Ids ids;
      bpe.encode(word, vocabulary, scratch, ids);
      EXPECT_EQ(ids, merge_by_definition(letters, model.merges)) << word;
    }
  }
}

// The same for words long enough for candidates to wait by rank; a pair's rank by a look-up, for
// speed.
Ids merge_long_by_definition(Ids symbols, const std::vector<MergeRule>& merges) {
  std::map<std::pair<TokenId, TokenId>, std::size_t> rank_of;
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    rank_of[{merges[rank].left, merges[rank].right}] = rank;
  }
  while (true) {
    std::size_t best_rank = merges.size();
    std::size_t best = 0;
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto found = rank_of.find({symbols[i], symbols[i + 1]});
      if (found == rank_of.end() || found->second >= best_rank) continue;
      best_rank = found->second;
      best = i;
    }
    if (best_rank == merges.size()) return symbols;
    symbols[best] = merges[best_rank].result;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

TEST(Bpe, MergesLongWordsByDefinition) {
  std::mt19937 random(17);
  Bpe::Scratch scratch;
  for (unsigned seed = 0; seed < 4; ++seed) {
    RandomModel model(seed);
    // In training order, parts before wholes, and in no order.
    if (seed % 2 == 0) {
      std::sort(model.merges.begin(), model.merges.end(),
                [](const MergeRule& a, const MergeRule& b) { return a.result < b.result; });
    }
    const Vocabulary vocabulary = make_vocabulary(model.pieces);
    const Bpe bpe = Bpe::by_rank(vocabulary, model.merges, {});
    for (const std::string& word : {model.word(random, 2500), std::string(2500, 'a' + seed)}) {
      Ids letters;
      for (const char c : word) letters.push_back(c - 'a');
      Ids ids;
      bpe.encode(word, vocabulary, scratch, ids);
      EXPECT_TRUE(ids == merge_long_by_definition(letters, model.merges)) << word;
    }
  }
}

// Words as bytes are spelled the same, whatever the options, the first time and later.
TEST(Bpe, BytesAsTheirSpelling) {
  std::vector<std::string> alphabet;
  for (int byte = 0; byte < 256; ++byte) {
    std::string& piece = alphabet.emplace_back();
    append_byte_level(std::string(1, static_cast<char>(byte)), piece);
  }
  constexpr std::string_view kBytes = "ab \n\xE3\x81";
  const auto random_word = [&](std::mt19937& random, std::size_t most) {
    std::string word;
    for (std::size_t i = random() % most + 1; i > 0; --i) word += kBytes[random() % kBytes.size()];
    return word;
  };
  std::mt19937 random(18);
  for (int kind = 0; kind < 6; ++kind) {
    std::vector<std::string> pieces = alphabet;
    if (kind == 4) pieces['b'] = "<unk>";  // the alphabet is incomplete
    std::vector<MergeRule> merges;
    while (pieces.size() < 320) {
      std::string left;
      std::string right;
      append_byte_level(random_word(random, 3), left);
      append_byte_level(random_word(random, 3), right);
      const auto at = [&](const std::string& piece) {
        return std::find(pieces.begin(), pieces.end(), piece) - pieces.begin();
      };
      const auto n = static_cast<std::ptrdiff_t>(pieces.size());
      if (at(left) == n || at(right) == n || at(left + right) != n) continue;
      merges.push_back({static_cast<TokenId>(at(left)), static_cast<TokenId>(at(right)),
                        static_cast<TokenId>(n)});
      pieces.push_back(left + right);
    }
    pieces.emplace_back("aaaaab");  // no merge leads to it
    const Vocabulary vocabulary = make_vocabulary(pieces);
    BpeOptions options;
    options.ignore_merges = kind == 1;
    options.whole_line_ends = kind == 2;
    options.byte_fallback = kind == 3;
    if (kind >= 3) options.unknown = 'x';
    if (kind == 5) options.continuing_prefix = "a";
    const Bpe bpe = Bpe::by_rank(vocabulary, merges, options);
    Bpe::Scratch scratch;
    Bpe::Scratch other;
    std::vector<std::string> words = {"aaaaab"};
    for (int i = 0; i < 3000; ++i) words.push_back(random_word(random, i % 10 == 0 ? 60 : 8));
    for (int i = 0; i < 20000; ++i) {
      const std::string& word = words[random() % words.size()];
      std::string spelled;
      append_byte_level(word, spelled);
      Ids expected = {1};
      bpe.encode(spelled, vocabulary, other, expected);
      Ids ids = {1};
      bpe.encode_bytes(word, vocabulary, scratch, ids);
      ASSERT_EQ(ids, expected) << kind << ": " << spelled;
    }
  }
}

// SentencePiece's definition: merges any two neighbours whose text is a piece, the highest score
// first.
std::vector<std::string> merge_by_score(std::vector<std::string> symbols,
                                        const std::vector<std::string>& pieces,
                                        const std::vector<double>& scores) {
  while (true) {
    double best_score = -std::numeric_limits<double>::infinity();
    std::size_t best = symbols.size();
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto found = std::find(pieces.begin(), pieces.end(), symbols[i] + symbols[i + 1]);
      if (found == pieces.end()) continue;
      const double score = scores[static_cast<std::size_t>(found - pieces.begin())];
      if (score > best_score) {
        best_score = score;
        best = i;
      }
    }
    if (best == symbols.size()) return symbols;
    symbols[best] += symbols[best + 1];
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

TEST(Bpe, MergesByScore) {
  std::mt19937 random(11);
  for (unsigned seed = 0; seed < 20; ++seed) {
    RandomModel model(seed);
    // Without two letters: they occur in merges without being pieces themselves.
    model.pieces.erase(model.pieces.begin(), model.pieces.begin() + 2);
    std::vector<std::string> pieces = model.pieces;
    std::vector<double> scores;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      scores.push_back(-static_cast<double>(random() % 40));  // with many ties
    }
    for (int byte = 0; byte < 256; ++byte) {
      pieces.push_back(byte_token_piece(byte));
      scores.push_back(0);
    }
    const Vocabulary vocabulary = make_vocabulary(pieces);
    BpeOptions options;
    options.byte_fallback = true;
    const Bpe bpe = Bpe::by_score(vocabulary, scores, options);
    Bpe::Scratch scratch;
    for (const std::size_t n : {1, 2, 3, 10, 24, 25, 60, 200}) {
      const std::string word = model.word(random, n);
      std::vector<std::string> letters;
      for (const char c : word) letters.emplace_back(1, c);
      Ids expected;
      for (const std::string& symbol : merge_by_score(letters, model.pieces, scores)) {
        const TokenId id = vocabulary.find(symbol);
        expected.push_back(id != kNoToken ? id
                                          : vocabulary.find(byte_token_piece(
                                                static_cast<unsigned char>(symbol[0]))));
      }
      Ids ids;
      bpe.encode(word, vocabulary, scratch, ids);
      EXPECT_EQ(ids, expected) << word;
    }
  }
}

// Counts work, not time. There are at most 3 look-ups and queue entries per character, for any
// text, and a long word is not scanned again and again.
TEST(Bpe, WorkIsLinearInTheText) {
  constexpr std::size_t kBytes = 1000000;
  const RandomModel model(3);
  Vocabulary vocabulary = make_vocabulary(model.pieces);
  std::mt19937 random(5);
  std::vector<std::string> texts = {std::string(kBytes, 'a'), model.word(random, kBytes), ""};
  while (texts[2].size() < kBytes) texts[2] += "abcdefgh";
  for (const std::string& text : texts) {
    for (const bool by_score : {false, true}) {
      std::vector<double> scores(model.pieces.size());
      for (std::size_t i = 0; i < scores.size(); ++i) scores[i] = -static_cast<double>(i);
      const Bpe bpe = by_score ? Bpe::by_score(vocabulary, scores, {})
                               : Bpe::by_rank(vocabulary, model.merges, {});
      Bpe::Scratch scratch;
      Ids ids;
      bpe.encode(text, vocabulary, scratch, ids);
      EXPECT_LE(scratch.n_lookups, 3 * text.size());
      EXPECT_LE(scratch.queue.n_pushed(), 3 * text.size());
      std::string back;
      for (const TokenId id : ids) back += vocabulary[id].piece;
      EXPECT_EQ(back, text);
    }
  }
}

TEST(Bpe, EqualScoresMergeFromTheLeft) {
  const Vocabulary vocabulary = make_vocabulary({"a", "b", "aa", "ab", "aab"});
  const Bpe bpe = Bpe::by_score(vocabulary, std::vector<double>(5, 0.0), {});
  Bpe::Scratch scratch;
  Ids ids;
  bpe.encode("aaab", vocabulary, scratch, ids);
  EXPECT_EQ(ids, (Ids{2, 3}));
}

TEST(Bpe, UnknownCharactersVanishWithoutAnUnknownToken) {
  const Vocabulary vocabulary = make_vocabulary({"a", "b", "ab", "<unk>"});
  const std::vector<MergeRule> merges = {{0, 1, 2}};
  Bpe::Scratch scratch;
  Ids ids;
  Bpe::by_rank(vocabulary, merges, {}).encode("axb", vocabulary, scratch, ids);
  EXPECT_EQ(ids, Ids{2});
  ids.clear();
  BpeOptions options;
  options.unknown = 3;
  Bpe::by_rank(vocabulary, merges, options).encode("axyb", vocabulary, scratch, ids);
  EXPECT_EQ(ids, (Ids{0, 3, 3, 1}));
  ids.clear();
  options.fuse_unknown = true;
  Bpe::by_rank(vocabulary, merges, options).encode("axyb", vocabulary, scratch, ids);
  EXPECT_EQ(ids, (Ids{0, 3, 1}));
}

}  // namespace
}  // namespace outrider
