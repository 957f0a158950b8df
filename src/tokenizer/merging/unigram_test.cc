// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/merging/unigram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "tokenizer/merging/bpe.h"
#include "tokenizer/test_tokenizers.h"

namespace outrider {
namespace {

using Ids = std::vector<TokenId>;

struct Model {
  std::vector<std::string> pieces;
  std::vector<double> scores;
  UnigramOptions options;

  Vocabulary vocabulary() const {
    std::vector<TokenEntry> entries;
    for (const std::string& piece : pieces) entries.push_back({piece, true, true, false, false});
    return Vocabulary(std::move(entries), "test");
  }
  Unigram unigram(const Vocabulary& vocabulary) const {
    std::vector<ScoredPiece> scored;
    for (std::size_t id = 0; id < pieces.size(); ++id) {
      scored.push_back({static_cast<TokenId>(id), scores[id]});
    }
    return Unigram(vocabulary, scored, options);
  }
};

Ids encode(const Model& model, const std::string& word) {
  const Vocabulary vocabulary = model.vocabulary();
  Unigram::Scratch scratch;
  Ids ids;
  model.unigram(vocabulary).encode(word, vocabulary, false, scratch, ids);
  return ids;
}

// Letters of one to four bytes.
const std::vector<std::string> kLetters = {"a", "b", "c", "é", "▁", "水", "😀"};

std::string random_word(std::mt19937& random, std::size_t n_letters, std::size_t n) {
  std::string word;
  for (std::size_t i = 0; i < n; ++i) word += kLetters[random() % n_letters];
  return word;
}

// Most letters are pieces, and so are some texts of two to four letters. Id 0 is the unknown piece.
Model random_model(std::mt19937& random, bool single_precision) {
  Model model;
  const auto score = [&] { return -1 - static_cast<double>(random() % 4000) / 500; };
  model.pieces = {"<unk>"};
  model.scores = {0};
  for (std::size_t i = 0; i < kLetters.size(); ++i) {
    if (random() % 5 == 0) continue;
    model.pieces.push_back(kLetters[i]);
    model.scores.push_back(score());
  }
  while (model.pieces.size() < 60) {
    const std::string piece = random_word(random, kLetters.size(), 2 + random() % 3);
    if (std::find(model.pieces.begin(), model.pieces.end(), piece) != model.pieces.end()) continue;
    model.pieces.push_back(piece);
    model.scores.push_back(score());
  }
  if (single_precision) {
    for (double& one : model.scores) one = static_cast<double>(static_cast<float>(one));
  }
  model.options.unknown = 0;
  model.options.unknown_score =
      *std::min_element(model.scores.begin(), model.scores.end()) - kUnknownPenalty;
  model.options.single_precision = single_precision;
  return model;
}

// The search written plainly: every piece at every character, with places for the whole word.
Ids search(const Model& model, const std::string& word) {
  struct Place {
    bool reached = false;
    double sum = 0;
    std::size_t begin = 0;
    TokenId id = 0;
  };
  const bool single = model.options.single_precision;
  std::vector<Place> places(word.size() + 1);
  for (std::size_t at = 0; at < word.size();) {
    if (single && places[at].sum < -100000) {
      const double passed = places[at].sum;
      for (std::size_t ahead = at; ahead <= word.size(); ++ahead) {
        if (!places[ahead].reached && ahead > 0) continue;
        places[ahead].sum = static_cast<double>(static_cast<float>(places[ahead].sum - passed));
      }
    }
    const auto offer = [&](std::size_t n_bytes, TokenId id, double score) {
      const double exact = places[at].sum + score;
      const double sum = single ? static_cast<double>(static_cast<float>(exact)) : exact;
      Place& place = places[at + n_bytes];
      if (!place.reached || sum > place.sum) place = {true, sum, at, id};
    };
    const auto n_bytes = static_cast<std::size_t>(code_point_at(word, at).n_bytes);
    bool is_piece = false;
    for (std::size_t id = 1; id < model.pieces.size(); ++id) {
      const std::string& piece = model.pieces[id];
      if (word.compare(at, piece.size(), piece) != 0) continue;
      offer(piece.size(), static_cast<TokenId>(id), model.scores[id]);
      is_piece = is_piece || piece.size() == n_bytes;
    }
    if (!is_piece) offer(n_bytes, 0, model.options.unknown_score);
    at += n_bytes;
  }
  Ids ids;
  for (std::size_t at = word.size(); at > 0; at = places[at].begin) {
    const bool goes_on = places[at].id == 0 && !ids.empty() && ids.back() == 0;
    if (!goes_on) ids.push_back(places[at].id);
  }
  std::reverse(ids.begin(), ids.end());
  return ids;
}

TEST(Unigram, SearchesByDefinition) {
  std::mt19937 random(11);
  for (const bool single_precision : {false, true}) {
    for (int round = 0; round < 30; ++round) {
      const Model model = random_model(random, single_precision);
      for (const std::size_t n : {1, 2, 3, 7, 20, 60, 300}) {
        const std::string word = random_word(random, kLetters.size(), n);
        EXPECT_EQ(encode(model, word), search(model, word)) << word;
      }
    }
  }
  // Long enough for sums in single precision to be restarted several times.
  for (const bool single_precision : {false, true}) {
    Model model = random_model(random, single_precision);
    for (double& score : model.scores) score *= 64;
    model.options.unknown_score *= 64;
    const std::string word = random_word(random, kLetters.size(), 3000);
    EXPECT_EQ(encode(model, word), search(model, word));
  }
}

// The highest sum of all ways to spell word[at..] with pieces.
double best_sum(const Model& model, const std::string& word, std::size_t at) {
  if (at == word.size()) return 0;
  double best = -std::numeric_limits<double>::infinity();
  for (std::size_t id = 1; id < model.pieces.size(); ++id) {
    const std::string& piece = model.pieces[id];
    if (word.compare(at, piece.size(), piece) != 0) continue;
    best = std::max(best, model.scores[id] + best_sum(model, word, at + piece.size()));
  }
  return best;
}

TEST(Unigram, NoOtherWayIsBetter) {
  std::mt19937 random(13);
  for (int round = 0; round < 40; ++round) {
    Model model = random_model(random, false);
    for (const std::string& letter : kLetters) {  // nothing is unknown
      if (std::find(model.pieces.begin(), model.pieces.end(), letter) != model.pieces.end())
        continue;
      model.pieces.push_back(letter);
      model.scores.push_back(-9);
    }
    for (std::size_t n = 1; n < 10; ++n) {
      const std::string word = random_word(random, kLetters.size(), n);
      double sum = 0;
      for (const TokenId id : encode(model, word))
        sum += model.scores[static_cast<std::size_t>(id)];
      EXPECT_NEAR(sum, best_sum(model, word, 0), 1e-9) << word;  // of ten scores above -10
    }
  }
}

// By hand: for equal sums the earliest beginning of the last piece wins.
TEST(Unigram, OfEqualSumsTheLongestLastPieceCounts) {
  const Model model{{"0", "00", "▁"}, {-2, -3, -1}, {}};
  EXPECT_EQ(encode(model, "000"), (Ids{0, 1}));
  EXPECT_EQ(encode(model, "0000"), (Ids{1, 1}));
  EXPECT_EQ(encode(model, "00000"), (Ids{0, 1, 1}));
}

// 1 + 2^-24 rounds to 1 in single precision, so the second path is no better there.
TEST(Unigram, SumsInSinglePrecision) {
  Model model{{"a", "b", "ab"}, {1, std::ldexp(1.0, -24), 1}, {}};
  EXPECT_EQ(encode(model, "ab"), (Ids{0, 1}));
  model.options.single_precision = true;
  EXPECT_EQ(encode(model, "ab"), Ids{2});
}

TEST(Unigram, UnknownCharacters) {
  Model model{{"<unk>", "a", "▁", "☃☃"}, {0, -1, -2, -30}, {}};
  model.options.unknown = 0;
  model.options.unknown_score = -12;
  EXPECT_EQ(encode(model, "a☃▁☃é水a"), (Ids{1, 0, 2, 0, 1}));
  EXPECT_EQ(encode(model, ""), Ids{});
  // A run that is a piece itself, as in tokenizers.
  EXPECT_EQ(encode(model, "a☃☃a"), (Ids{1, 3, 1}));
  EXPECT_EQ(encode(model, "a☃☃☃a"), (Ids{1, 0, 1}));
  for (const int byte : {0xE2, 0x98, 0x83, 0xC3}) {
    model.pieces.push_back(byte_token_piece(byte));
    model.scores.push_back(-20);
  }
  EXPECT_EQ(encode(model, "☃a"), (Ids{0, 1}));
  model.options.byte_fallback = true;
  EXPECT_EQ(encode(model, "☃a"), (Ids{4, 5, 6, 1}));
  EXPECT_EQ(encode(model, "aé"), (Ids{1, 0}));  // <0xA9> is missing
  EXPECT_EQ(encode(model, "☃é"), Ids{0});       // for the whole run
}

TEST(Unigram, WithoutAnUnknownToken) {
  Model model{{"a", "ab"}, {-1, -2}, {}};
  model.options.unknown_score = -12;
  EXPECT_EQ(encode(model, "aab"), (Ids{0, 1}));  // the b is never unknown
  try {
    encode(model, "abb");
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("U+0062"), std::string::npos) << error.what();
  }
}

TEST(Unigram, AddedTokensCanBeLeftOut) {
  std::vector<TokenEntry> entries = {{"<unk>", true, false, true, true},
                                     {"a", true, true, false, false},
                                     {"aa", true, true, false, true}};
  const Vocabulary vocabulary(std::move(entries), "test");
  UnigramOptions options;
  options.unknown = 0;
  options.unknown_score = -20;
  const std::vector<ScoredPiece> pieces = {{1, -1}, {2, -1}};
  const Unigram unigram(vocabulary, pieces, options);
  Unigram::Scratch scratch;
  for (const bool without_added : {false, true}) {
    Ids ids;
    unigram.encode("aa", vocabulary, without_added, scratch, ids);
    EXPECT_EQ(ids, without_added ? (Ids{1, 1}) : Ids{2});
  }
}

// Counts work, not time: a step per byte of a piece that may begin somewhere, and places as far as
// pieces overlap.
TEST(Unigram, WorkIsLinearInTheText) {
  std::mt19937 random(5);
  Model model = random_model(random, false);
  std::size_t longest = 0;
  for (const std::string& piece : model.pieces) longest = std::max(longest, piece.size());
  const Vocabulary vocabulary = model.vocabulary();
  const Unigram unigram = model.unigram(vocabulary);
  for (const std::string& word : {random_word(random, kLetters.size(), 200000),
                                  std::string(1000000, 'a'), std::string(1000000, 'x')}) {
    Unigram::Scratch scratch;
    Ids ids;
    unigram.encode(word, vocabulary, false, scratch, ids);
    EXPECT_LE(scratch.n_steps, word.size() * (longest + 1));
  }
  // Words that no piece crosses are settled one by one.
  Model words{{"▁ab", "b▁"}, {-1, -1}, {}};
  words.options.unknown = 0;
  words.options.unknown_score = -12;
  const Vocabulary of_words = words.vocabulary();
  std::string text;
  for (int i = 0; i < 100000; ++i) text += "▁abxx";
  Unigram::Scratch scratch;
  Ids ids;
  words.unigram(of_words).encode(text, of_words, false, scratch, ids);
  EXPECT_LE(scratch.n_places, 6u);
  // Pieces overlap from end to end: all paths have the same beginnings.
  for (const bool single_precision : {false, true}) {
    const Model chained = random_model(random, single_precision);
    const Vocabulary of_chained = chained.vocabulary();
    const std::string word = random_word(random, 3, 100000);
    Unigram::Scratch used;
    Ids found;
    chained.unigram(of_chained).encode(word, of_chained, false, used, found);
    EXPECT_LE(used.n_places, 2100u);
    EXPECT_EQ(found, search(chained, word));
  }
}

// The best paths to odd and to even places never meet: nothing is settled before the end.
TEST(Unigram, WaysThatNeverMeet) {
  const Model model{{"<unk>", "a", "aa"}, {0, -2, -3}, {.unknown = 0, .unknown_score = -50}};
  for (const std::size_t n : {9999, 10000, 10001, 65536}) {
    const std::string word(n, 'a');
    EXPECT_EQ(encode(model, word), search(model, word)) << n;
  }
}

}  // namespace
}  // namespace outrider
