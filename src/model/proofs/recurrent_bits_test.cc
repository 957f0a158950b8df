// SPDX-License-Identifier: Apache-2.0
// Models with recurrent layers keep the promise: a row's bits do not depend on how it was computed,
// rejected nodes leave no trace, and a rewound sequence is where it says.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "model/cache/kv_sequence.h"
#include "outrider/error.h"
#include "tests/support/goldens/golden_models.h"
#include "tests/support/kernel_tables.h"
#include "tests/support/models/identity_model.h"
#include "tests/support/models/run_model.h"
#include "tests/support/pairs_of_the_day.h"

namespace outrider {
namespace {

using kernels::KvKind;
using test::part;
using test::Rows;

constexpr int kVocabulary = 97;

std::vector<TokenId> some_tokens(std::size_t n, unsigned start) {
  return test::tokens_without_pattern(n, start, kVocabulary);
}
TokenId other_than(TokenId token, int by = 1) { return (token + by) % kVocabulary; }

// A tree whose right path is scattered among wrong nodes: 5 levels of 5 nodes, all children of the
// right node above.
struct WideTree {
  std::vector<TokenId> tokens;
  std::vector<int> parents;
  std::vector<int> path;  // the right nodes

  WideTree(const std::vector<TokenId>& text, std::size_t start) {
    constexpr int kWidth = 5;
    int parent = -1;
    for (int level = 0; level < 5; ++level) {
      const TokenId right = text[start + static_cast<std::size_t>(level)];
      const int place = (2 * level + 1) % kWidth;
      for (int i = 0; i < kWidth; ++i) {
        tokens.push_back(i == place ? right : other_than(right, i + 1));
        parents.push_back(parent);
      }
      parent = level * kWidth + place;
      path.push_back(parent);
    }
  }
};

class RecurrentBits
    : public ::testing::TestWithParam<std::tuple<std::string, test::NamedTable, WeightKind>> {
 protected:
  void SetUp() override {
    const auto& [name, table, weights] = GetParam();
    directory_ = test::golden_directory(name);
    model_ = test::load_on(directory_, *table.table, weights, KvKind::bf16, 1);
    two_threads_ = test::load_on(directory_, *table.table, weights, KvKind::bf16, 2);
    tokens_ = some_tokens(220, 1);
    const auto sequence = model_->open({});
    decoded_ = test::decode_one_by_one(*model_, *sequence, tokens_);
    ASSERT_FALSE(test::same_bits(decoded_[0], decoded_[1]));
  }
  void expect_next(LanguageModel& model, Sequence& sequence, std::size_t n) const {
    const auto first = static_cast<std::size_t>(sequence.n_kept());
    test::expect_same_bits(decoded_, first,
                           test::run_and_keep(model, sequence, part(tokens_, first, n)));
  }

  std::filesystem::path directory_;
  std::unique_ptr<LanguageModel> model_, two_threads_;
  std::vector<TokenId> tokens_;
  Rows decoded_;  // the logits after each token, one token per pass
};

TEST_P(RecurrentBits, OnePassAndRaggedOnes) {
  for (LanguageModel* model : {model_.get(), two_threads_.get()}) {
    const auto whole = model->open({});
    test::expect_same_bits(decoded_, 0, test::run_block(*model, *whole, tokens_));
    const auto ragged = model->open({});
    for (const std::size_t n : {1U, 7U, 16U, 33U, 2U, 64U, 3U}) expect_next(*model, *ragged, n);
    // Nodes that stay pending over several passes.
    const auto done = static_cast<std::size_t>(ragged->n_kept());
    std::size_t at = done;
    for (const std::size_t n : {3U, 1U, 9U}) {
      test::expect_same_bits(decoded_, at, test::run_block(*model, *ragged, part(tokens_, at, n)));
      at += n;
    }
    test::keep_first(*ragged, static_cast<int>(at - done));
    expect_next(*model, *ragged, 5);
  }
}

// Drafts of one to eight tokens, of which none to all are kept.
TEST_P(RecurrentBits, ChainsOfWhichAPartStands) {
  for (int length = 1; length <= 8; ++length) {
    const auto sequence = model_->open({});
    expect_next(*model_, *sequence, 3);
    for (int right = 0; sequence->n_kept() + length < 150; right = (right + 1) % (length + 1)) {
      const auto start = static_cast<std::size_t>(sequence->n_kept());
      // A chain after its root, which is committed.
      std::vector<TokenId> chain(tokens_.begin() + static_cast<std::ptrdiff_t>(start),
                                 tokens_.begin() + static_cast<std::ptrdiff_t>(start) + length + 1);
      if (right < length) {
        const auto wrong = static_cast<std::size_t>(right) + 1;
        chain[wrong] = other_than(chain[wrong]);
      }
      const Rows rows = test::run_block(*model_, *sequence, chain);
      test::expect_same_bits(decoded_, start, Rows(rows.begin(), rows.begin() + right + 1));
      test::keep_first(*sequence, right + 1);
    }
    expect_next(*model_, *sequence, 2);
  }
}

TEST_P(RecurrentBits, TreesOfTwentyFiveNodes) {
  for (LanguageModel* model : {model_.get(), two_threads_.get()}) {
    // At the beginning, within pages, and across a page boundary.
    for (const std::size_t start : {0U, 1U, 14U, 61U, 126U}) {
      const auto sequence = model->open({});
      if (start > 0) expect_next(*model, *sequence, start);
      const WideTree tree(tokens_, start);
      const Rows rows = test::run_block(*model, *sequence, tree.tokens, tree.parents);
      for (std::size_t i = 0; i < tree.path.size(); ++i) {
        EXPECT_TRUE(
            test::same_bits(rows[static_cast<std::size_t>(tree.path[i])], decoded_[start + i]));
      }
      // A second pass below the right leaf, with one wrong node.
      const std::vector<TokenId> more = {other_than(tokens_[start + 5]), tokens_[start + 5],
                                         tokens_[start + 6]};
      const std::vector<int> parents = {tree.path.back(), tree.path.back(), 26};
      const Rows more_rows = test::run_block(*model, *sequence, more, parents);
      test::expect_same_bits(decoded_, start + 5, {more_rows[1], more_rows[2]});
      // A wrong node's row equals that of decoding the wrong token.
      const auto astray = sequence->fork();
      const TokenId wrong = tree.tokens[0];
      test::expect_same_bits(test::decode_one_by_one(*model, *astray, {&wrong, 1}), 0, {rows[0]});
      // First none of it is kept; then a part; then all.
      sequence->keep({});
      test::run_block(*model, *sequence, tree.tokens, tree.parents);
      sequence->keep(std::vector<int>{tree.path[0], tree.path[1]});
      expect_next(*model, *sequence, 1);
      std::vector<int> path = WideTree(tokens_, start + 3).path;
      const WideTree next(tokens_, start + 3);
      test::run_block(*model, *sequence, next.tokens, next.parents);
      sequence->keep(path);
      expect_next(*model, *sequence, 20);
    }
  }
}

TEST_P(RecurrentBits, BatchOfEightRaggedTexts) {
  LanguageModel& model = *two_threads_;
  std::vector<std::unique_ptr<Sequence>> sequences;
  std::vector<std::vector<TokenId>> texts;
  std::vector<Rows> alone;
  for (unsigned i = 0; i < 8; ++i) {
    texts.push_back(some_tokens(70, 100 + i));
    const auto sequence = model_->open({});
    alone.push_back(test::decode_one_by_one(*model_, *sequence, texts.back()));
    sequences.push_back(model.open({}));
    test::run_and_keep(model, *sequences.back(), part(texts[i], 0, 1 + 8 * i));
  }
  // Each has a different number of rows; two are trees.
  std::vector<WideTree> trees;
  for (std::size_t i = 0; i < 8; ++i) trees.emplace_back(texts[i], 1 + 8 * i);
  std::vector<TokenBlock> blocks;
  for (std::size_t i = 0; i < 8; ++i) {
    if (i % 4 == 1) {
      blocks.push_back({sequences[i].get(), trees[i].tokens, trees[i].parents});
    } else {
      blocks.push_back({sequences[i].get(), part(texts[i], 1 + 8 * i, 1 + i), {}});
    }
  }
  ForwardOutput output;
  model.forward(blocks, {}, output);
  const Rows rows = test::rows_of(output);
  std::size_t row = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    SCOPED_TRACE(i);
    const std::size_t start = 1 + 8 * i;
    if (i % 4 == 1) {
      for (std::size_t j = 0; j < trees[i].path.size(); ++j) {
        EXPECT_TRUE(test::same_bits(rows[row + static_cast<std::size_t>(trees[i].path[j])],
                                    alone[i][start + j]));
      }
      sequences[i]->keep(trees[i].path);
    } else {
      const auto first = rows.begin() + static_cast<std::ptrdiff_t>(row);
      test::expect_same_bits(alone[i], start,
                             Rows(first, first + static_cast<std::ptrdiff_t>(1 + i)));
      test::keep_first(*sequences[i], static_cast<int>(1 + i));
    }
    row += blocks[i].tokens.size();
  }
  for (std::size_t i = 0; i < 8; ++i) {
    const auto at = static_cast<std::size_t>(sequences[i]->n_kept());
    test::expect_same_bits(
        alone[i], at,
        test::run_block(model, *sequences[i], part(texts[i], at, texts[i].size() - at)));
  }
}

// Forks diverge without affecting each other; forks of forks as well.
TEST_P(RecurrentBits, Forks) {
  const auto sequence = model_->open({});
  const auto of_nothing = sequence->fork();
  expect_next(*model_, *sequence, 70);
  const auto fork = sequence->fork();
  const auto fork_of_fork = fork->fork();
  test::run_and_keep(*model_, *sequence, some_tokens(30, 5));
  expect_next(*model_, *fork, 40);
  expect_next(*model_, *fork_of_fork, 3);
  expect_next(*model_, *of_nothing, 5);
  // With nodes pending: the fork has none.
  test::run_block(*model_, *fork, some_tokens(4, 9));
  const auto behind = fork->fork();
  EXPECT_EQ(behind->n_pending(), 0);
  fork->keep(std::vector<int>{0, 1});
  expect_next(*model_, *behind, 10);
}

// The last page boundary at or before that place with a snapshot, in tokens (state_snapshots.h).
int border_before(int n_tokens, int n_run) {
  for (int border = n_tokens / kPageTokens; border > 0; --border) {
    const int power = std::countr_zero(static_cast<unsigned>(border));
    if (n_run / kPageTokens - border < 1 << (power + 1)) return border * kPageTokens;
  }
  return 0;
}

// A rewound sequence reports its length, a page boundary, and continues from there.
TEST_P(RecurrentBits, Rewinding) {
  for (const int n_run : {1, 63, 64, 65, 130, 200}) {
    for (const int back : {0, 1, 2, 30, 64, 65, 129, 200}) {
      if (back > n_run) continue;
      SCOPED_TRACE(fmt::format("{} tokens, {} back", n_run, back));
      const auto sequence = model_->open({});
      expect_next(*model_, *sequence, static_cast<std::size_t>(n_run));
      test::run_block(*model_, *sequence, some_tokens(3, 7));
      const int wanted = n_run - back;
      const int left = sequence->rewind(wanted);
      EXPECT_EQ(left, back == 0 ? wanted : border_before(wanted, n_run));
      EXPECT_EQ(sequence->n_kept(), left);
      EXPECT_EQ(sequence->n_pending(), 0);
      // Another text, back again, then the old text.
      test::run_and_keep(*model_, *sequence, some_tokens(20, 3));
      EXPECT_LE(sequence->rewind(left), left);
      expect_next(*model_, *sequence, 15);
    }
  }
}

// A prefix hit: an earlier text's sequence is forked and rewound to the common beginning.
TEST_P(RecurrentBits, APrefixOfAnotherText) {
  const auto earlier = model_->open({});
  expect_next(*model_, *earlier, 150);
  test::run_and_keep(*model_, *earlier, some_tokens(30, 8));
  const auto hit = earlier->fork();
  EXPECT_EQ(hit->rewind(150), 128);
  expect_next(*model_, *hit, 60);
  const auto second = earlier->fork();
  EXPECT_EQ(second->rewind(180), 180);
  EXPECT_EQ(second->rewind(70), 64);
  expect_next(*model_, *second, 100);
}

std::string case_name(const ::testing::TestParamInfo<RecurrentBits::ParamType>& info) {
  std::string name = fmt::format("{}_{}_{}", std::get<0>(info.param), std::get<1>(info.param).name,
                                 name_of(std::get<2>(info.param)));
  for (const char other : {' ', '/', '.'}) std::replace(name.begin(), name.end(), other, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(
    All, RecurrentBits,
    ::testing::ValuesIn(test::product_of_the_day(
        test::names("lfm2_tied", "lfm2_long", "lfm2_untied", "qwen3_next_plain", "qwen3_next_mixed",
                    "qwen3_5_grouped", "qwen3_5_grouped/tiled.gguf", "qwen3_5_long",
                    "qwen3_5_moe_stacked", "qwen3_5_wide", "granite_hybrid_plain",
                    "granite_hybrid_mixed", "granite_hybrid_long", "nemotron_h_mixed",
                    "nemotron_h_long"),
        test::tables_of_the_day(),
        std::vector{WeightKind::f32, WeightKind::bf16, WeightKind::int8, WeightKind::int4})),
    case_name);

INSTANTIATE_TEST_SUITE_P(Tiles, RecurrentBits,
                         ::testing::Combine(::testing::Values("nemotron_h_mixed"),
                                            ::testing::ValuesIn(test::emulated_tiles_of_the_day()),
                                            ::testing::Values(WeightKind::bf16, WeightKind::int8)),
                         case_name);

// Quantised products are exact integer arithmetic; convolutions, delta rules and Mamba-2 have one
// order of sums. So all tables give the same bits.
TEST(RecurrentBitsAcrossTables, QuantisedModels) {
  const std::vector<TokenId> tokens = some_tokens(100, 9);
  for (const char* name :
       {"lfm2_tied", "lfm2_long", "lfm2_untied", "qwen3_next_plain", "qwen3_next_mixed",
        "qwen3_5_grouped", "qwen3_5_moe_stacked", "granite_hybrid_moe", "granite_hybrid_mixed",
        "nemotron_h_moe", "nemotron_h_mixed"}) {
    for (const WeightKind kind : {WeightKind::int8, WeightKind::int4}) {
      Rows expected;
      for (const auto& [table_name, table] : test::runnable_tables()) {
        SCOPED_TRACE(table_name);
        const auto model =
            test::load_on(test::golden_directory(name), *table, kind, KvKind::bf16, 1);
        const auto sequence = model->open({});
        const Rows rows = test::run_block(*model, *sequence, tokens);
        if (expected.empty()) expected = rows;
        test::expect_same_bits(expected, 0, rows);
      }
    }
  }
}

// A budget for just one text: snapshots are dropped, and nothing else changes.
TEST(RecurrentMemory, SnapshotsGiveWayToTokens) {
  const auto tokens = some_tokens(600, 4);
  const auto load = [](std::uint64_t bytes) {
    return load_model(test::golden_directory("lfm2_long"),
                      {.kv_memory_bytes = bytes, .n_threads = 1});
  };
  const auto free = load(0);
  const auto unbounded = free->open({});
  const Rows expected = test::decode_one_by_one(*free, *unbounded, tokens);
  const KvCache& cache = *dynamic_cast<KvSequence&>(*unbounded).cache();
  // Ten pages of tokens, a state, a page of inputs, and one or two snapshots.
  const std::size_t most = 10 * kPageTokens * cache.token_bytes() + 3 * cache.state_bytes() +
                           kInputNodes * cache.input_bytes();
  const auto bounded = load(most);
  const auto sequence = bounded->open({});
  for (std::size_t at = 0; at < tokens.size(); at += 4) {
    const SequenceGrowth growth{sequence.get(), 4};
    ASSERT_TRUE(bounded->fits({&growth, 1})) << at;
    test::expect_same_bits(expected, at,
                           test::run_and_keep(*bounded, *sequence, part(tokens, at, 4)));
  }
  EXPECT_LE(cache.pool().used_bytes(), cache.pool().held_bytes());
  const SequenceGrowth too_much{sequence.get(), 200};
  EXPECT_FALSE(bounded->fits({&too_much, 1}));
  EXPECT_THROW(test::run_block(*bounded, *sequence, part(tokens, 0, 200)), Error);
  const int left = sequence->rewind(590);
  EXPECT_LE(left, 590);
  const auto at = static_cast<std::size_t>(left);
  test::expect_same_bits(expected, at,
                         test::run_and_keep(*bounded, *sequence,
                                            part(tokens, at, std::min<std::size_t>(8, 600 - at))));
}

// An early exit's fork uses no snapshot of the sequence that it follows: they may be dropped there.
TEST(RecurrentMemory, AnEarlyExitHoldsNoSnapshots) {
  const auto tokens = some_tokens(600, 4);
  const auto free = load_model(test::golden_directory("lfm2_long"), {.n_threads = 1});
  const auto unbounded = free->open({});
  const Rows expected = test::decode_one_by_one(*free, *unbounded, tokens);
  const KvCache& cache = *dynamic_cast<KvSequence&>(*unbounded).cache();
  // The text's pages, its state and a page of inputs; and copies of the last page and of the state,
  // which the fork shares.
  const std::size_t most = 11 * kPageTokens * cache.token_bytes() + 2 * cache.state_bytes() +
                           kInputNodes * cache.input_bytes();
  const auto bounded =
      load_model(test::golden_directory("lfm2_long"), {.kv_memory_bytes = most, .n_threads = 1});
  const auto sequence = bounded->open({});
  for (std::size_t at = 0; at + 4 < tokens.size(); at += 4) {
    test::run_and_keep(*bounded, *sequence, part(tokens, at, 4));
  }
  const SequenceGrowth growth{sequence.get(), 4};
  ASSERT_TRUE(bounded->fits({&growth, 1}));
  const int last = bounded->config().n_layers - 1;
  const auto exit = bounded->fork_without(*sequence, {&last, 1});
  ASSERT_NE(exit, nullptr);
  EXPECT_TRUE(bounded->fits({&growth, 1}));
  test::expect_same_bits(expected, 596,
                         test::run_and_keep(*bounded, *sequence, part(tokens, 596, 4)));
}

}  // namespace
}  // namespace outrider
