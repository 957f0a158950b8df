// SPDX-License-Identifier: Apache-2.0
// Contexts of several splits (kernels/table.h): a row's logits have the same bits whether one
// thread processes its splits in turn or several threads share them.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/dispatch.h"
#include "model/cache/kv_sequence.h"
#include "tests/support/goldens/changed_golden.h"
#include "tests/support/goldens/golden_models.h"
#include "tests/support/kernel_tables.h"
#include "tests/support/models/identity_model.h"
#include "tests/support/models/run_model.h"
#include "tests/support/models/tiny_model.h"
#include "tests/support/nightly.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

using kernels::KvKind;
using test::part;
using test::Rows;

constexpr int kVocabulary = 131;
constexpr auto kSplit = static_cast<std::size_t>(kernels::kSplitKeys);

// Three key-value heads: one thread takes them all, and two threads cannot share them evenly.
const std::filesystem::path& three_heads() {
  static const test::TemporaryDirectory kDirectory;
  static const bool kWritten = [] {
    test::TinyShape shape;
    shape.seed = 5;
    shape.vocabulary_size = kVocabulary;
    shape.context_length = 4096;
    shape.n_layers = 2;
    shape.dim = 40;
    shape.n_heads = 6;
    shape.n_kv_heads = 3;
    shape.head_dim = 18;
    shape.hidden_dim = 48;
    test::write_hugging_face(test::make_tiny_model(shape), kDirectory.path());
    return true;
  }();
  (void)kWritten;
  return kDirectory.path();
}

std::unique_ptr<LanguageModel> load(const kernels::KernelTable& table, WeightKind weights,
                                    KvKind kv, int n_threads) {
  return test::load_on(three_heads(), table, weights, kv, n_threads);
}

std::vector<TokenId> some_tokens(std::size_t n, unsigned start) {
  return test::tokens_without_pattern(n, start, kVocabulary);
}

// Runs the first n tokens in passes with too many rows to share splits.
std::unique_ptr<Sequence> prefilled(LanguageModel& model, const std::vector<TokenId>& tokens,
                                    std::size_t n,
                                    const std::vector<TokenId>& encoder_tokens = {}) {
  auto sequence = model.open({.encoder_tokens = encoder_tokens});
  for (std::size_t done = 0; done < n;) {
    const std::size_t rows = std::min<std::size_t>(n - done, 300);
    test::run_and_keep(model, *sequence, part(tokens, done, rows));
    done += rows;
  }
  return sequence;
}

class SplitAttention
    : public ::testing::TestWithParam<std::tuple<test::NamedTable, WeightKind, KvKind>> {};

// load(n_threads): returns a model with that vocabulary. Its encoder, if any, reads those tokens.
template <typename Load>
void expect_bits_of_one_thread(const Load& load, int vocabulary,
                               const std::vector<TokenId>& encoder_tokens = {}) {
  // Rows end before the second split and within it.
  constexpr std::size_t kBefore = kSplit - 9;
  const std::vector<TokenId> tokens = test::tokens_without_pattern(kBefore + 40, 1, vocabulary);
  const auto one = load(1);
  const auto alone = prefilled(*one, tokens, kBefore, encoder_tokens);
  const Rows expected = test::decode_one_by_one(*one, *alone, part(tokens, kBefore, 40));
  ASSERT_FALSE(test::same_bits(expected[0], expected[20]));

  for (const int n_threads : {2, 4}) {
    SCOPED_TRACE(n_threads);
    const auto model = load(n_threads);
    const auto sequence = prefilled(*model, tokens, kBefore, encoder_tokens);
    test::expect_same_bits(expected, 0,
                           test::decode_one_by_one(*model, *sequence, part(tokens, kBefore, 12)));
    sequence->truncate(static_cast<int>(kBefore));
    test::expect_same_bits(expected, 0,
                           test::run_block(*model, *sequence, part(tokens, kBefore, 40)));
    sequence->keep({});
    // The right path among wrong siblings: chunks are gathered on both sides of the split's
    // boundary.
    std::vector<TokenId> nodes;
    std::vector<int> parents;
    for (std::size_t i = 0; i < 30; ++i) {
      const TokenId right = tokens[kBefore + i];
      nodes.insert(nodes.end(), {static_cast<TokenId>((right + 1) % vocabulary), right});
      const int parent = static_cast<int>(2 * i) - 1;
      parents.insert(parents.end(), {parent, parent});
    }
    const Rows rows = test::run_block(*model, *sequence, nodes, parents);
    Rows right_rows;
    for (std::size_t i = 0; i < 30; ++i) right_rows.push_back(rows[2 * i + 1]);
    test::expect_same_bits(expected, 0, right_rows);
  }
}

TEST_P(SplitAttention, ManyThreadsGiveTheBitsOfOne) {
  expect_bits_of_one_thread(
      [](int n_threads) {
        const auto& [table, weights, kv] = GetParam();
        return load(*table.table, weights, kv, n_threads);
      },
      kVocabulary);
}

// For a golden model, with a context of several splits.
void expect_bits_of_one_thread(const char* golden) {
  const auto& [table, weights, kv] = SplitAttention::GetParam();
  const test::TemporaryDirectory directory;
  test::copy_changed(golden, {{"max_position_embeddings", 4096}}, directory.path());
  expect_bits_of_one_thread(
      [&, kernels = table.table, held = weights, cache = kv](int n_threads) {
        return test::load_on(directory.path(), *kernels, held, cache, n_threads);
      },
      test::json_of(directory.path() / "config.json")["vocab_size"]);
}

// A sink is added after the last split, whichever thread took it (three heads of gpt-oss; the first
// layer has no window).
TEST_P(SplitAttention, SinksJoinOnceWhateverSharesSplits) {
  expect_bits_of_one_thread("gpt_oss_listed");
}

// Sums are narrower than queries: four heads attend together, and ten do so in two parts.
TEST_P(SplitAttention, LatentsAreSummedUpByWhomever) {
  expect_bits_of_one_thread("deepseek_v3_plain");
  expect_bits_of_one_thread("deepseek_v3_stacked");
}

// Layers with different heads, and layers that read the keys of others.
TEST_P(SplitAttention, HeadsOfTwoWidthsAreSharedOutEachByThemselves) {
  expect_bits_of_one_thread("gemma4_shared");
}

// Biases by distance beyond a split, and an encoder with more than one split.
TEST_P(SplitAttention, BiasesByDistanceReachOverSplits) {
  expect_bits_of_one_thread(
      [](int n_threads) {
        const auto& [table, weights, kv] = GetParam();
        return test::load_on(test::golden_directory("t5_plain"), *table.table, weights, kv,
                             n_threads);
      },
      97, test::tokens_without_pattern(kSplit + 70, 3, 97));
}

std::string case_name(const ::testing::TestParamInfo<SplitAttention::ParamType>& info) {
  std::string table = std::get<0>(info.param).name;
  std::replace(table.begin(), table.end(), ' ', '_');
  return table + (std::get<1>(info.param) == WeightKind::bf16 ? "_bf16" : "_int8") + "_kv" +
         outrider::name_of(std::get<2>(info.param));
}

// Texts of several splits take the plain table seconds: by day it has one case, and the fastest
// all.
std::vector<SplitAttention::ParamType> cases_of_the_day() {
  std::vector<SplitAttention::ParamType> cases;
  for (const test::NamedTable& table : test::tables_of_the_day()) {
    for (const WeightKind weights : {WeightKind::bf16, WeightKind::int8}) {
      for (const KvKind kv : {KvKind::f32, KvKind::bf16, KvKind::int8}) {
        const bool is_quick = table.name != "scalar";
        const bool is_for_slow = weights == WeightKind::int8 && kv == KvKind::int8;
        if (is_quick || is_for_slow || test::nightly()) cases.emplace_back(table, weights, kv);
      }
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, SplitAttention, ::testing::ValuesIn(cases_of_the_day()), case_name);

INSTANTIATE_TEST_SUITE_P(Tiles, SplitAttention,
                         ::testing::Combine(::testing::ValuesIn(test::emulated_tiles_of_the_day()),
                                            ::testing::Values(WeightKind::int8),
                                            ::testing::Values(KvKind::bf16)),
                         case_name);

// Sequences of one, two and three splits in one pass.
TEST(SplitAttentionTogether, SequencesOfOtherLengthsShareAPass) {
  const kernels::KernelTable& table = kernels::best_table();
  const std::vector<TokenId> tokens = some_tokens(2 * kSplit + 50, 2);
  const std::size_t lengths[] = {2 * kSplit + 20, 70, kSplit + 3};
  constexpr std::size_t kRows = 3;

  const auto one = load(table, WeightKind::int8, KvKind::bf16, 1);
  const auto two = load(table, WeightKind::int8, KvKind::bf16, 2);
  std::vector<Rows> expected;
  std::vector<std::unique_ptr<Sequence>> sequences;
  std::vector<TokenBlock> blocks;
  for (const std::size_t length : lengths) {
    const auto sequence = prefilled(*one, tokens, length);
    expected.push_back(test::decode_one_by_one(*one, *sequence, part(tokens, length, kRows)));
    sequences.push_back(prefilled(*two, tokens, length));
    blocks.push_back({sequences.back().get(), part(tokens, length, kRows), {}});
  }
  ForwardOutput output;
  two->forward(blocks, {}, output);
  const Rows rows = test::rows_of(output);
  ASSERT_EQ(rows.size(), expected.size() * kRows);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto first = rows.begin() + static_cast<std::ptrdiff_t>(i * kRows);
    test::expect_same_bits(expected[i], 0, Rows(first, first + kRows));
  }
}

}  // namespace
}  // namespace outrider
