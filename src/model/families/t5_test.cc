// SPDX-License-Identifier: Apache-2.0
// T5's buckets, what its encoder reads and keeps, and refusals. (families_test.cc tests its logits,
// both file formats, and trees on every kernel table.)
#include "model/families/t5.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "model/families/registry.h"
#include "outrider/error.h"
#include "tests/support/goldens/changed_golden.h"
#include "tests/support/goldens/golden_models.h"
#include "tests/support/kernel_tables.h"
#include "tests/support/models/identity_model.h"
#include "tests/support/models/run_model.h"
#include "tests/support/pairs_of_the_day.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

using kernels::KvKind;
using test::golden_directory;
using test::GoldenModel;
using test::Row;
using test::Rows;

// The beginnings of buckets from -200 to 200, by T5Attention._relative_position_bucket of
// transformers 5.12.1.
using Borders = std::vector<std::pair<int, int>>;  // distance, bucket

Borders borders_of(const RelativeBuckets& buckets) {
  Borders borders;
  for (int distance = -200; distance <= 200; ++distance) {
    const int bucket = bucket_of(distance, buckets);
    if (borders.empty() || borders.back().second != bucket) borders.push_back({distance, bucket});
  }
  return borders;
}

TEST(RelativeBuckets, AreThoseOfTransformers) {
  EXPECT_EQ(borders_of({.n = 32, .max_distance = 128, .both_sides = true}),
            (Borders{{-200, 15}, {-90, 14}, {-63, 13}, {-45, 12}, {-31, 11}, {-22, 10}, {-15, 9},
                     {-11, 8},   {-7, 7},   {-6, 6},   {-5, 5},   {-4, 4},   {-3, 3},   {-2, 2},
                     {-1, 1},    {0, 0},    {1, 17},   {2, 18},   {3, 19},   {4, 20},   {5, 21},
                     {6, 22},    {7, 23},   {8, 24},   {12, 25},  {16, 26},  {23, 27},  {32, 28},
                     {46, 29},   {64, 30},  {91, 31}}));
  EXPECT_EQ(borders_of({.n = 32, .max_distance = 128, .both_sides = false}),
            (Borders{{-200, 31}, {-112, 30}, {-98, 29}, {-86, 28}, {-76, 27}, {-66, 26}, {-58, 25},
                     {-51, 24},  {-45, 23},  {-39, 22}, {-34, 21}, {-30, 20}, {-26, 19}, {-23, 18},
                     {-20, 17},  {-18, 16},  {-15, 15}, {-14, 14}, {-13, 13}, {-12, 12}, {-11, 11},
                     {-10, 10},  {-9, 9},    {-8, 8},   {-7, 7},   {-6, 6},   {-5, 5},   {-4, 4},
                     {-3, 3},    {-2, 2},    {-1, 1},   {0, 0}}));
  EXPECT_EQ(borders_of({.n = 6, .max_distance = 11, .both_sides = true}),
            (Borders{{-200, 2}, {-3, 1}, {0, 0}, {1, 4}, {4, 5}}));
  EXPECT_EQ(borders_of({.n = 6, .max_distance = 11, .both_sides = false}),
            (Borders{{-200, 5}, {-7, 4}, {-4, 3}, {-2, 2}, {-1, 1}, {0, 0}}));
  EXPECT_EQ(borders_of({.n = 8, .max_distance = 20, .both_sides = true}),
            (Borders{{-200, 3}, {-6, 2}, {-1, 1}, {0, 0}, {1, 5}, {2, 6}, {7, 7}}));
  EXPECT_EQ(borders_of({.n = 8, .max_distance = 20, .both_sides = false}),
            (Borders{{-200, 7}, {-13, 6}, {-8, 5}, {-5, 4}, {-3, 3}, {-2, 2}, {-1, 1}, {0, 0}}));
}

class T5Bits : public ::testing::TestWithParam<std::tuple<test::NamedTable, KvKind, WeightKind>> {};

// Eight texts of different lengths with different encoder prompts in one pass, some with a tree of
// 25 nodes; forks and rewinds. Rows have the bits of one token per pass, alone.
TEST_P(T5Bits, OfRaggedBatchesTreesAndForks) {
  const auto& [table, kv, weights] = GetParam();
  const auto directory = golden_directory("t5_far");
  const auto one = test::load_on(directory, *table.table, weights, kv, 1);
  const auto two = test::load_on(directory, *table.table, weights, kv, 2);
  struct Text {
    std::vector<TokenId> encoder, tokens;
    Rows expected;
    std::unique_ptr<Sequence> sequence;
    std::size_t n_kept;
  };
  constexpr std::size_t kDepth = 12;
  std::vector<Text> texts(8);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    Text& text = texts[i];
    const auto seed = static_cast<unsigned>(i);
    text.encoder = test::tokens_without_pattern(1 + 23 * i, 5 + seed, 97);
    text.n_kept = 11 * i;
    text.tokens = test::tokens_without_pattern(text.n_kept + kDepth + 1, 50, 97);
    const auto alone = one->open({.encoder_tokens = text.encoder});
    text.expected = test::decode_one_by_one(*one, *alone, text.tokens);
    text.sequence = two->open({.encoder_tokens = text.encoder});
    if (text.n_kept > 0) {
      test::run_and_keep(*two, *text.sequence, test::part(text.tokens, 0, text.n_kept));
    }
  }
  // The same tokens give other logits with another encoder prompt.
  ASSERT_FALSE(test::same_bits(texts[1].expected[0], texts[2].expected[0]));

  // On each level a wrong node and the right one, after the root.
  std::vector<std::vector<TokenId>> nodes(texts.size());
  std::vector<int> parents = {-1};
  for (int level = 0; level < static_cast<int>(kDepth); ++level) {
    const int parent = level == 0 ? 0 : 2 * level;
    parents.insert(parents.end(), {parent, parent});
  }
  std::vector<TokenBlock> blocks;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    Text& text = texts[i];
    nodes[i] = {text.tokens[text.n_kept]};
    for (std::size_t level = 1; level <= kDepth; ++level) {
      const TokenId right = text.tokens[text.n_kept + level];
      nodes[i].insert(nodes[i].end(), {(right + 1) % 97, right});
    }
    ASSERT_EQ(nodes[i].size(), 25u);
    blocks.push_back({text.sequence.get(), nodes[i], parents});
  }
  ForwardOutput output;
  two->forward(blocks, {}, output);
  const Rows rows = test::rows_of(output);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    Text& text = texts[i];
    EXPECT_TRUE(test::same_bits(rows[25 * i], text.expected[text.n_kept])) << i;
    std::vector<int> path = {0};
    for (std::size_t level = 1; level <= kDepth; ++level) {
      const std::size_t node = 2 * level;
      EXPECT_TRUE(test::same_bits(rows[25 * i + node], text.expected[text.n_kept + level]))
          << "text " << i << ", level " << level;
      path.push_back(static_cast<int>(node));
    }
    text.sequence->keep(path);
    const auto fork = text.sequence->fork();
    text.sequence.reset();  // the fork is now the only owner of the encoder's keys and values
    const auto n_left = static_cast<int>(text.n_kept + 3);
    fork->truncate(n_left);
    test::expect_same_bits(
        text.expected, text.n_kept + 3,
        test::run_block(*two, *fork, test::part(text.tokens, text.n_kept + 3, 7)));
  }
}

INSTANTIATE_TEST_SUITE_P(All, T5Bits,
                         ::testing::ValuesIn(test::product_of_the_day(
                             test::quick_tables_first(),
                             std::vector{KvKind::f32, KvKind::bf16, KvKind::int8},
                             std::vector{WeightKind::f32, WeightKind::bf16, WeightKind::int8})),
                         [](const auto& info) {
                           std::string name =
                               fmt::format("{}_kv{}_{}", std::get<0>(info.param).name,
                                           name_of(std::get<1>(info.param)),
                                           kernels::name_of(std::get<2>(info.param)));
                           std::replace(name.begin(), name.end(), ' ', '_');
                           return name;
                         });

// Quantised products are exact, and attention with biases has one order of sums.
TEST(T5AcrossTables, QuantisedModelsHaveOneLogit) {
  const GoldenModel golden("t5_tied");
  for (const KvKind kv : {KvKind::f32, KvKind::bf16, KvKind::int8}) {
    Rows expected;
    for (const auto& [name, table] : test::runnable_tables()) {
      SCOPED_TRACE(name);
      const auto model = test::load_on(golden.directory, *table, WeightKind::int8, kv, 1);
      const auto sequence = model->open({.encoder_tokens = golden.encoder_ids});
      const Rows rows = test::run_block(*model, *sequence, golden.ids);
      if (expected.empty()) expected = rows;
      test::expect_same_bits(expected, 0, rows);
    }
  }
}

// A text page of each layer is as large as one of cross keys; the encoder's own pages are freed
// after its run.
std::unique_ptr<LanguageModel> load_for_pages(const GoldenModel& golden, int n_pages) {
  LoadOptions options{.weights = WeightKind::f32, .kv = KvKind::f32, .n_threads = 1};
  const auto token_bytes = static_cast<std::uint64_t>(
      load_model(golden.directory, options)->footprint().kv_bytes_per_token);
  options.kv_memory_bytes = static_cast<std::uint64_t>(n_pages) * token_bytes * kPageTokens;
  return load_model(golden.directory, options);
}

// The encoder's output counts once for all forks, and is freed with the last of them.
TEST(T5Memory, HoldsWhatTheEncoderRead) {
  const GoldenModel golden("t5_plain");
  const auto model = load_for_pages(golden, 3);
  const std::vector<TokenId> start = {0};
  const std::vector<TokenId> other(golden.encoder_ids.rbegin(), golden.encoder_ids.rend());
  const auto alone = test::load_f32(golden.directory);
  const Rows rows = test::run_block(*alone, *alone->open({.encoder_tokens = other}), start);
  auto first = model->open({.encoder_tokens = golden.encoder_ids});
  SequenceGrowth growth{.sequence = first.get(), .n_tokens = 1};
  EXPECT_TRUE(model->fits({&growth, 1}));
  (void)test::run_and_keep(*model, *first, start);
  auto second = model->open({.encoder_tokens = other});
  growth.sequence = second.get();
  EXPECT_FALSE(model->fits({&growth, 1}));  // two pages are in use, and it needs three
  EXPECT_THROW(test::run_block(*model, *second, start), Error);
  auto fork = first->fork();
  first.reset();
  EXPECT_FALSE(model->fits({&growth, 1}));
  fork.reset();
  EXPECT_TRUE(model->fits({&growth, 1}));
  test::expect_same_bits(rows, 0, test::run_block(*model, *second, start));
}

// Texts with the same encoder input share it, as long as one of them exists.
TEST(T5Memory, TextsWhoseEncoderReadsTheSameShareIt) {
  const GoldenModel golden("t5_plain");
  const auto model = load_for_pages(golden, 3);
  const auto encoder_of = [](Sequence& sequence) {
    return dynamic_cast<KvSequence&>(sequence).encoder();
  };
  const std::vector<TokenId> start = {0};
  auto first = model->open({.encoder_tokens = golden.encoder_ids});
  // Its encoder has not run.
  const auto before = model->open({.encoder_tokens = golden.encoder_ids});
  const Rows rows = test::run_and_keep(*model, *first, start);
  auto behind = model->open({.encoder_tokens = golden.encoder_ids});
  EXPECT_EQ(encoder_of(*before), encoder_of(*first));
  EXPECT_EQ(encoder_of(*behind), encoder_of(*first));
  first.reset();
  for (Sequence* sequence : {before.get(), behind.get()}) {
    const SequenceGrowth growth{.sequence = sequence, .n_tokens = 1};
    EXPECT_TRUE(model->fits({&growth, 1}));
    test::expect_same_bits(rows, 0, test::run_block(*model, *sequence, start));
  }
  std::vector<TokenId> shorter = golden.encoder_ids;
  shorter.pop_back();
  const auto other = model->open({.encoder_tokens = shorter});
  EXPECT_NE(encoder_of(*other), encoder_of(*behind));
}

std::string message_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// generation_config.json's counts, as in Hugging Face's generate(); GGUF has a key of its own.
TEST(T5, TextsBeginWithTheStartTokenThatTheFilesName) {
  const auto start_of = [](const nlohmann::json& changes, const char* generation) {
    const test::TemporaryDirectory directory;
    test::write_changed_config("t5_plain", changes, directory.path());
    if (generation != nullptr) {
      std::ofstream(directory.path() / "generation_config.json") << generation;
    }
    return read_family(directory.path())->config().start_token;
  };
  EXPECT_EQ(start_of({{"decoder_start_token_id", 5}}, nullptr), 5);
  EXPECT_EQ(start_of({{"decoder_start_token_id", 5}}, R"({"decoder_start_token_id": 7})"), 7);
  EXPECT_EQ(start_of({{"decoder_start_token_id", 5}}, R"({"eos_token_id": 1})"), 5);
  const nlohmann::json none = {{"decoder_start_token_id", test::kNoKey}, {"pad_token_id", 3}};
  EXPECT_EQ(start_of(none, nullptr), 3);
  EXPECT_EQ(start_of(none, R"({"decoder_start_token_id": 7})"), 7);
  EXPECT_NE(test::read_changed("t5_plain", {{"decoder_start_token_id", -1}})
                .refusal.find("decoder_start_token_id"),
            std::string::npos);
  const auto file = test::load_f32(golden_directory("t5_plain") / "model.gguf");
  EXPECT_EQ(file->config().start_token, 0);
  EXPECT_EQ(file->config().end_tokens, std::vector<TokenId>{1});
}

TEST(T5, RefusesWhatItCannotRead) {
  const GoldenModel golden("t5_plain");
  const auto model = test::load_f32(golden.directory);
  EXPECT_NE(message_of([&] { (void)model->open({}); }).find("encoder-decoder"), std::string::npos);
  const std::vector<TokenId> unknown = {97};
  EXPECT_NE(message_of([&] { (void)model->open({.encoder_tokens = unknown}); }).find("97"),
            std::string::npos);
  const auto sequence = model->open({.encoder_tokens = golden.encoder_ids});
  const auto ignore = [](std::span<const std::byte>) {};
  EXPECT_NE(message_of([&] { model->save(*sequence, ignore); }).find("one with an encoder"),
            std::string::npos);
  const auto decoder = test::load_f32(golden_directory("llama_plain"));
  EXPECT_NE(message_of([&] {
              (void)decoder->open({.encoder_tokens = golden.encoder_ids});
            }).find("this model is a decoder"),
            std::string::npos);

  for (const auto& [key, value] : {std::pair{"feed_forward_proj", nlohmann::json("gated-silu")},
                                   std::pair{"dense_act_fn", nlohmann::json("relu")},
                                   std::pair{"relative_attention_num_buckets", nlohmann::json(7)},
                                   std::pair{"relative_attention_max_distance", nlohmann::json(16)},
                                   std::pair{"is_encoder_decoder", nlohmann::json(false)},
                                   std::pair{"decoder_start_token_id", nlohmann::json(97)},
                                   std::pair{"model_type", nlohmann::json("umt5")}}) {
    const std::string error = test::read_changed("t5_plain", {{key, value}}).refusal;
    EXPECT_NE(error.find(key), std::string::npos) << key << ": " << error;
  }
}

}  // namespace
}  // namespace outrider
