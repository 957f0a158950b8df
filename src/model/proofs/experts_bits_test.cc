// SPDX-License-Identifier: Apache-2.0
// The promise of bit_identity_test.cc for mixtures of experts: a row's bits depend neither on how
// it was computed nor on the experts of the other rows in its pass. Tests every weight format and
// kernel table that this machine can run; every table with every model, in nightly runs in every
// format.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "model/cache/kv_sequence.h"
#include "model/decoder_model.h"
#include "tests/support/goldens/golden_models.h"
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
using test::Rows;

constexpr int kVocabulary = 131;

// No size divides another, as in bit_identity_test.cc; three of seven experts.
test::TinyShape ragged_shape() {
  test::TinyShape shape;
  shape.seed = 5;
  shape.vocabulary_size = kVocabulary;
  shape.dim = 72;
  shape.n_heads = 6;
  shape.n_kv_heads = 2;
  shape.head_dim = 18;
  shape.hidden_dim = 52;
  shape.n_experts = 7;
  shape.n_experts_used = 3;
  return shape;
}

// Widths in whole blocks of 256.
test::TinyShape block_shape() {
  test::TinyShape shape = ragged_shape();
  shape.n_layers = 1;
  shape.dim = 256;
  shape.n_heads = 4;
  shape.head_dim = 64;
  shape.hidden_dim = 256;
  return shape;
}

// The files, written once: a directory, and GGUF files with stored types.
struct Files {
  test::TemporaryDirectory directory;
  Files() {
    test::write_hugging_face(test::make_tiny_model(ragged_shape()), directory.path());
    const test::TinyModel of_blocks = test::make_tiny_model(block_shape());
    for (const ElementType type : {ElementType::q8_0, ElementType::q4_0, ElementType::q6_k}) {
      test::write_gguf(of_blocks, file(type), {.matrices = type, .head = ElementType::q8_0});
    }
  }
  std::filesystem::path file(ElementType type) const {
    return directory.path() / (std::string(name_of(type)) + ".gguf");
  }
};

const Files& files() {
  static const Files kFiles;
  return kFiles;
}

// A case: weights of the directory, or a file in its stored types, or a golden model.
struct Case {
  std::string name;
  std::optional<WeightKind> weights;
  std::optional<ElementType> stored;
  const char* golden = nullptr;
  int vocabulary = kVocabulary;
  int n_experts = 7;
  int n_used = 3;
  std::uint64_t expert_memory = 0;  // above 0: experts stay in the file, with this much memory

  std::filesystem::path path() const {
    if (golden != nullptr) return test::golden_directory(golden);
    return stored ? files().file(*stored) : files().directory.path();
  }
  std::string model() const {
    if (golden != nullptr) return golden;
    return stored ? "blocks" : "ragged";
  }
  std::string type() const {
    if (weights) return kernels::name_of(*weights);
    return stored ? std::string(name_of(*stored)) : "as in the file";
  }
  std::vector<TokenId> some_tokens(std::size_t n, unsigned start) const {
    return test::tokens_without_pattern(n, start, vocabulary);
  }

  std::unique_ptr<LanguageModel> load(const kernels::KernelTable& table, int n_threads) const {
    LoadOptions options;
    options.table = &table;
    options.weights = weights;
    options.n_threads = n_threads;
    options.experts_in_file = expert_memory > 0;
    options.expert_memory_bytes = expert_memory;
    auto model = load_model(path(), options);
    dynamic_cast<DecoderModel&>(*model).set_min_share_ns(0);
    return model;
  }
};

const std::vector<Case> kCases = {
    {"f32", WeightKind::f32, {}},
    {"bf16", WeightKind::bf16, {}},
    {"int8", WeightKind::int8, {}},
    {"int4", WeightKind::int4, {}},
    {"q8_0", {}, ElementType::q8_0},
    {"q4_0", {}, ElementType::q4_0},
    {"q6_k", {}, ElementType::q6_k},
    // Sinks, windows, and biases of routers and experts.
    {"gpt_oss_f32", WeightKind::f32, {}, "gpt_oss_plain", 97, 6, 4},
    {"gpt_oss_bf16", WeightKind::bf16, {}, "gpt_oss_plain", 97, 6, 4},
    {"gpt_oss_int8", WeightKind::int8, {}, "gpt_oss_plain", 97, 6, 4},
    {"gpt_oss_int4", WeightKind::int4, {}, "gpt_oss_plain", 97, 6, 4},
    {"gpt_oss_mxfp4", {}, {}, "gpt_oss_mxfp4", 97, 4, 2},
    // Latent attention; groups, sigmoids, a choice bias, shared experts.
    {"deepseek_v2_f32", WeightKind::f32, {}, "deepseek_v2_grouped", 97, 8, 3},
    {"deepseek_v2_int8", WeightKind::int8, {}, "deepseek_v2_grouped", 97, 8, 3},
    {"deepseek_v3_f32", WeightKind::f32, {}, "deepseek_v3_plain", 97, 8, 3},
    {"deepseek_v3_bf16", WeightKind::bf16, {}, "deepseek_v3_plain", 97, 8, 3},
    {"deepseek_v3_int4", WeightKind::int4, {}, "deepseek_v3_stacked", 97, 9, 4},
    // Two dense layers, and groups.
    {"glm4_moe_f32", WeightKind::f32, {}, "glm4_moe_air", 97, 8, 3},
    {"glm4_moe_int8", WeightKind::int8, {}, "glm4_moe_air", 97, 8, 3},
    // Experts beside an MLP. The router's norm differs from theirs, and each expert has a scale.
    {"gemma4_f32", WeightKind::f32, {}, "gemma4_moe", 97, 6, 2},
    {"gemma4_int8", WeightKind::int8, {}, "gemma4_moe", 97, 6, 2},
    // Experts without a gate, beside an MLP; with a narrower row, groups, and biases.
    {"nemotron_h_f32", WeightKind::f32, {}, "nemotron_h_moe", 97, 6, 2},
    {"nemotron_h_bf16", WeightKind::bf16, {}, "nemotron_h_moe", 97, 6, 2},
    {"nemotron_h_mixed_f32", WeightKind::f32, {}, "nemotron_h_mixed", 97, 8, 3},
    {"nemotron_h_mixed_int4", WeightKind::int4, {}, "nemotron_h_mixed", 97, 8, 3},
    // Experts in the file: memory for two matrices of a size; six of twenty-one; four of
    // twenty-four.
    {"f32_mapped", WeightKind::f32, {}, nullptr, kVocabulary, 7, 3, 71'000},
    {"q4_0_mapped", {}, ElementType::q4_0, nullptr, kVocabulary, 7, 3, 300'000},
    {"gpt_oss_mxfp4_mapped", {}, {}, "gpt_oss_mxfp4", 97, 4, 2, 6'000},
};

class ExpertsBits : public ::testing::TestWithParam<std::tuple<test::NamedTable, Case>> {
 protected:
  void SetUp() override {
    const auto& [table, what] = GetParam();
    case_ = what;
    Case in_memory = what;
    in_memory.expert_memory = 0;
    const auto one = in_memory.load(*table.table, 1);
    model_ = what.load(*table.table, 2);
    tokens_ = case_.some_tokens(90, 1);
    const auto sequence = one->open({});
    decoded_ = test::decode_one_by_one(*one, *sequence, tokens_);
    ASSERT_FALSE(test::same_bits(decoded_[0], decoded_[1]));
  }

  Case case_;
  std::unique_ptr<LanguageModel> model_;  // two threads
  std::vector<TokenId> tokens_;
  Rows decoded_;  // one token per pass, one thread
};

TEST_P(ExpertsBits, ChainsOfOneToEight) {
  const auto sequence = model_->open({});
  std::size_t done = 0;
  for (const std::size_t n : {1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u}) {
    test::expect_same_bits(decoded_, done,
                           test::run_and_keep(*model_, *sequence, part(tokens_, done, n)));
    done += n;
  }
  test::expect_same_bits(
      decoded_, done,
      test::run_block(*model_, *sequence, part(tokens_, done, tokens_.size() - done)));
}

// Five right nodes among twenty others, each below a random node.
TEST_P(ExpertsBits, TreesOfTwentyFiveNodes) {
  constexpr std::size_t kStart = 61;
  constexpr int kNodes = 25;
  const auto sequence = model_->open({});
  test::run_and_keep(*model_, *sequence, part(tokens_, 0, kStart));
  std::vector<TokenId> nodes;
  std::vector<int> parents;
  std::vector<int> path;
  for (int node = 0; node < kNodes; ++node) {
    if (node % 5 == 3) {
      parents.push_back(path.empty() ? -1 : path.back());
      nodes.push_back(tokens_[kStart + path.size()]);
      path.push_back(node);
    } else {
      parents.push_back(node * 7 % (node + 1) - 1);
      nodes.push_back((node * 31 + 5) % case_.vocabulary);
    }
  }
  const Rows rows = test::run_block(*model_, *sequence, nodes, parents);
  for (std::size_t i = 0; i < path.size(); ++i) {
    EXPECT_TRUE(test::same_bits(rows[static_cast<std::size_t>(path[i])], decoded_[kStart + i]));
  }
  sequence->keep(path);
  test::expect_same_bits(
      decoded_, kStart + path.size(),
      test::run_block(*model_, *sequence, part(tokens_, kStart + path.size(), 10)));
}

TEST_P(ExpertsBits, EightRaggedTextsInOnePass) {
  std::vector<std::vector<TokenId>> texts;
  std::vector<std::unique_ptr<Sequence>> sequences;
  std::vector<TokenBlock> blocks;
  for (unsigned i = 0; i < 8; ++i) texts.push_back(case_.some_tokens(1 + i * i % 11, 40 + i));
  texts[3] = {tokens_.begin(), tokens_.begin() + 9};
  for (const auto& text : texts) {
    sequences.push_back(model_->open({}));
    blocks.push_back({sequences.back().get(), text, {}});
  }
  ForwardOutput output;
  model_->forward(blocks, {}, output);
  const Rows rows = test::rows_of(output);
  std::size_t at = 0;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto alone = model_->open({});
    const Rows expected = test::decode_one_by_one(*model_, *alone, texts[i]);
    for (const auto& row : expected) EXPECT_TRUE(test::same_bits(row, rows[at++])) << i;
    if (i == 3) test::expect_same_bits(decoded_, 0, expected);
  }
  EXPECT_GT(output.experts_a_layer, case_.n_used);
  EXPECT_LE(output.experts_a_layer, case_.n_experts);
}

TEST_P(ExpertsBits, ForksAndWhatIsRewound) {
  constexpr std::size_t kStart = 50;
  const auto sequence = model_->open({});
  test::run_and_keep(*model_, *sequence, part(tokens_, 0, kStart));
  const auto fork = sequence->fork();
  const std::vector<TokenId> others = case_.some_tokens(9, 77);
  test::run_and_keep(*model_, *fork, others);
  test::expect_same_bits(decoded_, kStart,
                         test::run_and_keep(*model_, *sequence, part(tokens_, kStart, 20)));
  const auto from = static_cast<std::size_t>(fork->rewind(static_cast<int>(kStart) - 2));
  ASSERT_LE(from, kStart - 2);
  test::expect_same_bits(
      decoded_, from, test::run_and_keep(*model_, *fork, part(tokens_, from, kStart + 12 - from)));
}

// By day any two of a table, a model, a type of weights and a place of experts.
std::vector<ExpertsBits::ParamType> cases_of_the_day() {
  std::vector<ExpertsBits::ParamType> all;
  for (const test::NamedTable& table : test::quick_tables_first()) {
    for (const Case& what : kCases) all.emplace_back(table, what);
  }
  return test::pairs_of_the_day(all, [](const ExpertsBits::ParamType& one) {
    const auto& [table, what] = one;
    return test::CaseValues{table.name, what.model(), what.type(),
                            what.expert_memory > 0 ? "in the file" : "in memory"};
  });
}

INSTANTIATE_TEST_SUITE_P(All, ExpertsBits, ::testing::ValuesIn(cases_of_the_day()),
                         [](const auto& info) {
                           std::string name =
                               std::get<0>(info.param).name + "_" + std::get<1>(info.param).name;
                           std::replace(name.begin(), name.end(), ' ', '_');
                           return name;
                         });

// Quantised models compute with integers, and the router has one order of sums.
TEST(ExpertsAcrossTables, HaveTheSameBits) {
  for (const Case& what : kCases) {
    if (what.weights == WeightKind::bf16) continue;  // the one exception (kernels/table.h)
    const std::vector<TokenId> tokens = what.some_tokens(60, 9);
    Rows expected;
    for (const auto& [name, table] : test::runnable_tables()) {
      SCOPED_TRACE(what.name + " " + name);
      const auto model = what.load(*table, 2);
      const auto sequence = model->open({});
      const Rows rows = test::run_block(*model, *sequence, tokens);
      if (expected.empty()) expected = rows;
      test::expect_same_bits(expected, 0, rows);
    }
  }
}

// One row reads as many experts as it uses, and several rows read none twice.
TEST(Experts, AreCounted) {
  const auto model = kCases[0].load(*test::runnable_tables()[0].table, 1);
  const auto sequence = model->open({});
  ForwardOutput output;
  const std::vector<TokenId> tokens = kCases[0].some_tokens(60, 2);
  const TokenBlock one{sequence.get(), std::span(tokens).first(1), {}};
  model->forward({&one, 1}, {}, output);
  EXPECT_EQ(output.experts_a_layer, 3);
  sequence->keep({});
  const TokenBlock many{sequence.get(), tokens, {}};
  model->forward({&many, 1}, {}, output);
  EXPECT_EQ(output.experts_a_layer, 7);
  // Experts of 72 by 52 in f32 with tiles of 16 columns: four of seven are idle in each of two
  // layers.
  const Footprint footprint = model->footprint();
  EXPECT_EQ(footprint.idle_bytes, 2 * 4 * (2 * 64 * 72 + 80 * 52) * 4);
  EXPECT_GT(footprint.weight_bytes, footprint.idle_bytes);
}

}  // namespace
}  // namespace outrider
