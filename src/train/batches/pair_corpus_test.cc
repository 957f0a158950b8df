// SPDX-License-Identifier: Apache-2.0
#include "train/batches/pair_corpus.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "outrider/error.h"
#include "tests/support/models/tiny_tokenizer.h"
#include "tests/support/temporary_directory.h"

namespace outrider::train {
namespace {

class PairFiles : public ::testing::Test {
 protected:
  PairFiles() {
    write("tokenizer.json", test::tokenizer_json(test::make_tiny_vocabulary(300)));
    write("tokenizer_config.json", R"({"bos_token": "<|begin|>", "eos_token": "<|end|>"})");
    tokenizer_ = Tokenizer::load(directory_.path());
  }
  std::filesystem::path write(const std::string& name, const std::string& text) {
    std::ofstream(directory_.path() / name, std::ios::binary) << text;
    return directory_.path() / name;
  }
  // The error when reading these two texts; empty if there is none.
  std::string refusal(const std::string& source, const std::string& target) {
    try {
      read_pairs(write("a", source), write("b", target), *tokenizer_);
      return {};
    } catch (const Error& error) {
      return error.what();
    }
  }
  const test::TemporaryDirectory directory_;
  std::shared_ptr<const Tokenizer> tokenizer_;
};

TEST_F(PairFiles, LinesBelongTogether) {
  const auto pairs =
      read_pairs(write("a", "one two\r\n  three \nfour"), write("b", "1 2\n3\n4\n"), *tokenizer_);
  ASSERT_EQ(pairs.size(), 3u);
  const char* const sources[] = {"one two", "three", "four"};
  const char* const targets[] = {"1 2", "3", "4"};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(pairs[i].source, tokenizer_->encode(sources[i], true));
    std::vector<TokenId> target = tokenizer_->encode(targets[i], false);
    target.push_back(tokenizer_->eos_token());
    EXPECT_EQ(pairs[i].target, target);
  }
}

TEST_F(PairFiles, WhatDoesNotBelongTogetherIsRefusedByName) {
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_EQ(refusal("a\nb\n", "c\nd"), "");
  EXPECT_TRUE(has(refusal("a\nb\n", "c\n"), "b: expected 2 lines")) << refusal("a\nb\n", "c\n");
  EXPECT_TRUE(has(refusal("a\n\nb\n", "c\nd\ne\n"), "a line 2: expected a sentence"));
  EXPECT_TRUE(has(refusal("a\nb\n", "c\n \t\n"), "b line 2: expected a sentence"));
  EXPECT_TRUE(has(refusal("a\n\n", "c\n"), "a line 2"));
  EXPECT_TRUE(has(refusal("", "c\n"), "at least one line"));
  EXPECT_TRUE(has(refusal("caf\xe9\n", "c\n"), "UTF-8"));
  EXPECT_THROW(read_pairs(directory_.path() / "missing", write("b", "c\n"), *tokenizer_), Error);
  // A tokenizer without an end token cannot teach a model to stop.
  std::filesystem::remove(directory_.path() / "tokenizer_config.json");
  const auto without_end = Tokenizer::load(directory_.path());
  ASSERT_EQ(without_end->eos_token(), kNoToken);
  EXPECT_THROW(read_pairs(write("a", "x\n"), write("b", "y\n"), *without_end), Error);
}

// Pairs of many lengths, identified by their first tokens.
std::vector<SentencePair> made_pairs(int n) {
  std::vector<SentencePair> pairs;
  for (int i = 0; i < n; ++i) {
    SentencePair& pair = pairs.emplace_back();
    pair.source.assign(static_cast<std::size_t>(1 + i * 7 % 13), 100 + i);
    pair.target.assign(static_cast<std::size_t>(1 + i * 5 % 11), 500 + i);
  }
  return pairs;
}

TEST(PairSource, EveryPassCoversAllPairsOnce) {
  PairSource source(made_pairs(50), {.n_sequences = 8, .length = 16, .seed = 3}, 9);
  ASSERT_EQ(source.n_batches(), 7);
  std::vector<std::vector<TokenId>> orders;
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::set<TokenId> seen;
    std::vector<TokenId> order;
    std::int64_t n_tokens = 0;
    for (int i = 0; i < 7; ++i) {
      const PairBatch batch = source.batch(epoch * 7 + i);
      ASSERT_EQ(batch.sources.size(),
                static_cast<std::size_t>(batch.n_pairs * batch.source_length));
      ASSERT_EQ(batch.targets.size(),
                static_cast<std::size_t>(batch.n_pairs * batch.target_length));
      EXPECT_LE(batch.n_pairs, 8);
      EXPECT_EQ(*std::max_element(batch.n_in_sources.begin(), batch.n_in_sources.end()),
                batch.source_length);
      for (int row = 0; row < batch.n_pairs; ++row) {
        const auto at = static_cast<std::size_t>(row);
        const TokenId* text = &batch.sources[at * static_cast<std::size_t>(batch.source_length)];
        const TokenId* said = &batch.targets[at * static_cast<std::size_t>(batch.target_length)];
        for (int j = 0; j < batch.source_length; ++j) {
          EXPECT_EQ(text[j], j < batch.n_in_sources[at] ? text[0] : 9);
        }
        for (int j = 0; j < batch.target_length; ++j) {
          EXPECT_EQ(said[j], j < batch.n_in_targets[at] ? said[0] : 9);
        }
        EXPECT_EQ(said[0], text[0] + 400) << "another pair's";
        EXPECT_TRUE(seen.insert(text[0]).second);
        order.push_back(text[0]);
        n_tokens += batch.n_in_sources[at] + batch.n_in_targets[at];
      }
    }
    EXPECT_EQ(seen.size(), 50u);
    EXPECT_EQ(n_tokens, source.n_tokens());
    orders.push_back(order);
  }
  EXPECT_NE(orders[0], orders[1]);
  EXPECT_NE(orders[1], orders[2]);
}

TEST(PairSource, ABatchDependsOnItsNumberAlone) {
  const BatchShape shape{.n_sequences = 8, .length = 16, .seed = 3};
  PairSource in_order(made_pairs(50), shape, 0);
  std::vector<PairBatch> batches;
  for (int number = 0; number < 40; ++number) batches.push_back(in_order.batch(number));
  PairSource jumping(made_pairs(50), shape, 0);
  for (const int number : {33, 2, 39, 0}) {
    EXPECT_EQ(jumping.batch(number).sources, batches[static_cast<std::size_t>(number)].sources);
    EXPECT_EQ(jumping.batch(number).targets, batches[static_cast<std::size_t>(number)].targets);
  }
}

TEST(PairSource, PairsOfOneLengthShareABatch) {
  PairSource source(made_pairs(1100), {.n_sequences = 10, .length = 16, .seed = 3}, 0);
  for (int number = 0; number < 110; ++number) {
    const PairBatch batch = source.batch(number);
    const auto [least, most] =
        std::minmax_element(batch.n_in_targets.begin(), batch.n_in_targets.end());
    EXPECT_EQ(*least, *most);  // a hundred pairs of each of eleven lengths
  }
}

TEST(PairSource, LeavesOutWhatIsTooLong) {
  std::vector<SentencePair> pairs = made_pairs(5);
  pairs[1].source.assign(17, 100);
  pairs[3].target.assign(17, 500);
  PairSource source(pairs, {.n_sequences = 2, .length = 16, .seed = 0}, 0);
  EXPECT_EQ(source.n_left_out(), 2);
  EXPECT_EQ(source.n_pairs(), 3);
  const auto refusal = [](std::vector<SentencePair> of, int n_sequences) -> std::string {
    try {
      PairSource(std::move(of), {.n_sequences = n_sequences, .length = 16, .seed = 0}, 0, "val.de");
      return {};
    } catch (const Error& error) {
      return error.what();
    }
  };
  EXPECT_EQ(refusal({pairs[1]}, 2),
            "[make batches] val.de: expected a pair of texts of at most 16 tokens, got none");
  EXPECT_EQ(refusal({}, 2), refusal({pairs[1]}, 2));
  EXPECT_EQ(refusal(pairs, 0), "[make batches] shape: expected at least one pair, got 0");
  EXPECT_EQ(refusal(pairs, 1), "");
}

TEST(PairSource, ItsFingerprintTellsTheSidesApart) {
  const auto of = [](std::vector<TokenId> source, std::vector<TokenId> target) {
    return PairSource({{std::move(source), std::move(target)}}, {.n_sequences = 1, .length = 8}, 0)
        .fingerprint();
  };
  EXPECT_EQ(of({1, 2}, {3}), of({1, 2}, {3}));
  EXPECT_NE(of({1, 2}, {3}), of({1}, {2, 3}));
  EXPECT_NE(of({1, 2}, {3}), of({1, 2}, {4}));
}

}  // namespace
}  // namespace outrider::train
