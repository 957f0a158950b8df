// SPDX-License-Identifier: Apache-2.0
// The central promise: a row's logits have the same bits however the row was computed. Tests every
// weight format, cache type and kernel table that this machine can run: any two of them together,
// in nightly runs all three. Every comparison is memcmp.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/dispatch.h"
#include "model/cache/kv_sequence.h"
#include "tests/support/kernel_tables.h"
#include "tests/support/models/identity_model.h"
#include "tests/support/models/run_model.h"
#include "tests/support/models/tiny_model.h"
#include "tests/support/pairs_of_the_day.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

using kernels::KvKind;
using test::part;
using test::Row;
using test::Rows;

// No size divides another: not the groups of 32, nor tiles of 16 columns, nor pages.
test::TinyShape ragged_shape() {
  test::TinyShape shape;
  shape.seed = 3;
  shape.vocabulary_size = 131;
  shape.dim = 72;
  shape.n_heads = 6;
  shape.n_kv_heads = 2;
  shape.head_dim = 18;
  shape.hidden_dim = 100;
  shape.attention_bias = true;
  return shape;
}

// The files, written once.
const std::filesystem::path& ragged_model() {
  static const test::TemporaryDirectory kDirectory;
  static const bool kWritten = [] {
    test::write_hugging_face(test::make_tiny_model(ragged_shape()), kDirectory.path());
    return true;
  }();
  (void)kWritten;
  return kDirectory.path();
}

std::unique_ptr<LanguageModel> load(const kernels::KernelTable& table, WeightKind weights,
                                    KvKind kv, int n_threads) {
  return test::load_on(ragged_model(), table, weights, kv, n_threads);
}

// Usually longer than two chunks of keys.
std::vector<TokenId> some_tokens(std::size_t n, unsigned start) {
  return test::tokens_without_pattern(n, start, 131);
}

class BitIdentity
    : public ::testing::TestWithParam<std::tuple<test::NamedTable, WeightKind, KvKind>> {
 protected:
  void SetUp() override {
    const auto& [table, weights, kv] = GetParam();
    model_ = load(*table.table, weights, kv, 1);
    tokens_ = some_tokens(150, 1);
    const auto sequence = model_->open({});
    decoded_ = test::decode_one_by_one(*model_, *sequence, tokens_);
    // If rows were equal, the comparisons below would mean nothing.
    ASSERT_FALSE(test::same_bits(decoded_[0], decoded_[1]));
  }

  std::unique_ptr<LanguageModel> model_;
  std::vector<TokenId> tokens_;
  Rows decoded_;  // the logits after each token, one token per pass
};

TEST_P(BitIdentity, OnePassOverAllTokens) {
  const auto sequence = model_->open({});
  test::expect_same_bits(decoded_, 0, test::run_block(*model_, *sequence, tokens_));
}

TEST_P(BitIdentity, RaggedChunksKeptAndPending) {
  const auto sequence = model_->open({});
  std::size_t done = 0;
  for (const std::size_t n : {1u, 7u, 16u, 33u, 2u, 64u}) {
    test::expect_same_bits(decoded_, done,
                           test::run_and_keep(*model_, *sequence, part(tokens_, done, n)));
    done += n;
  }
  // The rest in passes whose nodes stay pending, each a chain after the one before.
  const std::size_t n_kept = done;
  for (const std::size_t n : {3u, 1u, 9u}) {
    test::expect_same_bits(decoded_, done,
                           test::run_block(*model_, *sequence, part(tokens_, done, n)));
    done += n;
  }
  EXPECT_EQ(sequence->n_pending(), static_cast<int>(done - n_kept));
  test::keep_first(*sequence, static_cast<int>(done - n_kept));
  test::expect_same_bits(decoded_, done,
                         test::run_block(*model_, *sequence, part(tokens_, done, 5)));
}

// The right path is scattered among wrong siblings; keep() leaves only this path.
TEST_P(BitIdentity, TreeWithSiblingsThenKeep) {
  for (const std::size_t start : {0u, 14u, 61u}) {  // first token; within a page; across pages
    const auto sequence = model_->open({});
    if (start > 0) test::run_and_keep(*model_, *sequence, part(tokens_, 0, start));
    const auto right = [&](std::size_t i) { return tokens_[start + i]; };
    const auto wrong = [&](std::size_t i) { return (tokens_[start + i] + 1) % 131; };
    //   0 wrong0          -> 3
    //   1 right0 -> 2 wrong1
    //            -> 4 right1 -> 5 right2 -> 7 right3
    //                        -> 6 wrong2
    const std::vector<TokenId> nodes = {wrong(0), right(0), wrong(1), right(1),
                                        right(1), right(2), wrong(2), right(3)};
    const std::vector<int> parents = {-1, -1, 1, 0, 1, 4, 4, 5};
    const Rows rows = test::run_block(*model_, *sequence, nodes, parents);
    test::expect_same_bits(decoded_, start, {rows[1], rows[4], rows[5], rows[7]});

    // Two more nodes below the previous pass, one of them wrong.
    const std::vector<TokenId> more = {wrong(4), right(4), right(5)};
    const std::vector<int> more_parents = {7, 7, 9};
    const Rows more_rows = test::run_block(*model_, *sequence, more, more_parents);
    test::expect_same_bits(decoded_, start + 4, {more_rows[1], more_rows[2]});

    // A wrong node's row equals that of decoding the wrong token.
    const auto other = sequence->fork();
    EXPECT_EQ(other->n_kept(), static_cast<int>(start));
    const std::vector<TokenId> astray = {wrong(0), right(1)};
    const Rows astray_rows = test::decode_one_by_one(*model_, *other, astray);
    test::expect_same_bits(astray_rows, 0, {rows[0], rows[3]});

    sequence->keep(std::vector<int>{1, 4, 5, 7, 9, 10});
    EXPECT_EQ(sequence->n_kept(), static_cast<int>(start + 6));
    EXPECT_EQ(sequence->n_pending(), 0);
    test::expect_same_bits(decoded_, start + 6,
                           test::run_block(*model_, *sequence, part(tokens_, start + 6, 20)));
  }
}

TEST_P(BitIdentity, SequencesBatchedInOnePass) {
  const std::vector<TokenId> second = some_tokens(40, 77);
  const auto alone = model_->open({});
  const Rows second_decoded = test::decode_one_by_one(*model_, *alone, second);

  const auto a = model_->open({});
  const auto b = model_->open({});
  const auto c = model_->open({});
  test::run_and_keep(*model_, *a, part(tokens_, 0, 100));
  test::run_and_keep(*model_, *c, part(second, 0, 5));
  const std::vector<int> parents = {-1, -1, 1};  // c: a wrong node comes first
  const std::vector<TokenId> nodes = {static_cast<TokenId>((second[5] + 1) % 131), second[5],
                                      second[6]};
  const TokenBlock blocks[] = {{a.get(), part(tokens_, 100, 1), {}},
                               {b.get(), part(tokens_, 0, 21), {}},
                               {c.get(), nodes, parents}};
  ForwardOutput output;
  model_->forward(blocks, {}, output);
  const Rows rows = test::rows_of(output);
  ASSERT_EQ(rows.size(), 25u);
  test::expect_same_bits(decoded_, 100, {rows[0]});
  test::expect_same_bits(decoded_, 0, Rows(rows.begin() + 1, rows.begin() + 22));
  test::expect_same_bits(second_decoded, 5, {rows[23], rows[24]});

  // If fewer rows are requested, they are the same.
  a->keep({});
  b->keep({});
  c->keep({});
  const int listed[] = {0, 5, 24};
  model_->forward(blocks, {{RowSet::Kind::listed, listed}}, output);
  test::expect_same_bits({rows[0], rows[5], rows[24]}, 0, test::rows_of(output));
  EXPECT_EQ(output.logits.n_rows(), 3);
  a->keep({});
  b->keep({});
  c->keep({});
  model_->forward(blocks, {{RowSet::Kind::last_of_each_block, {}}}, output);
  test::expect_same_bits({rows[0], rows[21], rows[24]}, 0, test::rows_of(output));
  a->keep({});
  b->keep({});
  c->keep({});
  model_->forward(blocks, {{RowSet::Kind::none, {}}}, output);
  EXPECT_EQ(output.logits.n_rows(), 0);
}

TEST_P(BitIdentity, TwoThreads) {
  const auto& [table, weights, kv] = GetParam();
  const auto two = load(*table.table, weights, kv, 2);
  const auto sequence = two->open({});
  test::expect_same_bits(decoded_, 0, test::run_and_keep(*two, *sequence, part(tokens_, 0, 70)));
  test::expect_same_bits(decoded_, 70,
                         test::decode_one_by_one(*two, *sequence, part(tokens_, 70, 10)));
  // A wide tree with right nodes among wrong ones: both threads gather chunks.
  constexpr std::size_t kDepth = 32;
  std::vector<TokenId> nodes;
  std::vector<int> parents;
  for (std::size_t i = 0; i < kDepth; ++i) {
    const TokenId right = tokens_[80 + i];
    nodes.insert(nodes.end(), {static_cast<TokenId>((right + 1) % 131), right});
    const int parent = static_cast<int>(2 * i) - 1;
    parents.insert(parents.end(), {parent, parent});
  }
  const Rows rows = test::run_block(*two, *sequence, nodes, parents);
  Rows right_rows;
  for (std::size_t i = 0; i < kDepth; ++i) right_rows.push_back(rows[2 * i + 1]);
  test::expect_same_bits(decoded_, 80, right_rows);
}

// Forks in the middle of a page diverge without affecting each other.
TEST_P(BitIdentity, ForksAndTruncation) {
  const auto sequence = model_->open({});
  test::run_and_keep(*model_, *sequence, part(tokens_, 0, 37));
  const auto fork = sequence->fork();
  const std::vector<TokenId> other = some_tokens(30, 5);
  test::run_and_keep(*model_, *sequence, other);
  test::expect_same_bits(decoded_, 37, test::run_and_keep(*model_, *fork, part(tokens_, 37, 40)));
  // Back to before the fork, after other tokens.
  sequence->truncate(30);
  EXPECT_EQ(sequence->n_kept(), 30);
  test::expect_same_bits(decoded_, 30,
                         test::run_and_keep(*model_, *sequence, part(tokens_, 30, 20)));
  test::expect_same_bits(decoded_, 77,
                         test::decode_one_by_one(*model_, *fork, part(tokens_, 77, 5)));
  // Everything again from the beginning.
  fork->truncate(0);
  test::expect_same_bits(decoded_, 0, test::run_and_keep(*model_, *fork, part(tokens_, 0, 18)));
}

INSTANTIATE_TEST_SUITE_P(
    All, BitIdentity,
    ::testing::ValuesIn(test::product_of_the_day(
        test::quick_tables_first(),
        std::vector{WeightKind::f32, WeightKind::bf16, WeightKind::int8, WeightKind::int4},
        std::vector{KvKind::f32, KvKind::bf16, KvKind::int8})),
    [](const auto& info) {
      std::string table = std::get<0>(info.param).name;
      std::replace(table.begin(), table.end(), ' ', '_');
      const KvKind kv = std::get<2>(info.param);
      return table + "_" + name_of(std::get<1>(info.param)) + "_kv" + outrider::name_of(kv);
    });

// Quantised products are exact integer arithmetic, so all tables give the same bits.
TEST(BitIdentityAcrossTables, QuantisedModels) {
  const std::vector<TokenId> tokens = some_tokens(100, 9);
  for (const WeightKind kind : {WeightKind::int8, WeightKind::int4}) {
    for (const KvKind kv : {KvKind::f32, KvKind::bf16, KvKind::int8}) {
      Rows expected;
      for (const auto& [name, table] : test::runnable_tables()) {
        SCOPED_TRACE(name);
        const auto model = load(*table, kind, kv, 1);
        const auto sequence = model->open({});
        const Rows rows = test::run_block(*model, *sequence, tokens);
        if (expected.empty()) expected = rows;
        test::expect_same_bits(expected, 0, rows);
      }
    }
  }
}

}  // namespace
}  // namespace outrider
