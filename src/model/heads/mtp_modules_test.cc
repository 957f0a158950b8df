// SPDX-License-Identifier: Apache-2.0
// Modules of published checkpoints against a program written from their descriptions
// (tests/golden/make/make_mtp_golden.py): their logits and states, in both file formats. Also files
// without modules, and with other ones.
#include "model/heads/mtp_modules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "io/safetensors/safetensors.h"
#include "io/safetensors/safetensors_writer.h"
#include "outrider/error.h"
#include "tests/support/goldens/golden_modules.h"
#include "tests/support/kernel_tables.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using test::GoldenModule;
using test::Row;
using test::Rows;
using ::testing::HasSubstr;

// A target and its one module.
struct Loaded {
  std::unique_ptr<LanguageModel> target;
  std::unique_ptr<FeatureHead> module;
};

Loaded load(const fs::path& path,
            const LoadOptions& options = {
                .weights = WeightKind::f32, .kv = kernels::KvKind::f32, .n_threads = 2}) {
  Loaded loaded{.target = load_model(path, options), .module = nullptr};
  auto modules = load_mtp_modules(path, *loaded.target, options);
  EXPECT_EQ(modules.size(), 1U);
  loaded.module = std::move(modules.front());
  return loaded;
}

// The states that the target gives the module for a text.
std::vector<float> states_of(Loaded& loaded, std::span<const TokenId> text) {
  const auto sequence = loaded.target->open({});
  const TokenBlock block{.sequence = sequence.get(), .tokens = text, .parents = {}};
  ForwardOutput output;
  loaded.target->forward({&block, 1}, {.feature_layers = loaded.module->feature_layers()}, output);
  const std::size_t n = text.size() * static_cast<std::size_t>(output.feature_width);
  std::vector<float> states(n);
  loaded.module->read(std::span<const float>(output.features).first(n), states);
  return states;
}

struct Given {
  Rows logits;
  std::vector<float> states;
};

// One pass of the module over a chain, whose nodes are kept.
Given run(FeatureHead& module, Sequence& sequence, std::span<const TokenId> tokens,
          std::span<const float> states) {
  const TokenBlock block{
      .sequence = &sequence, .tokens = tokens, .parents = {}, .features = states};
  ForwardOutput output;
  module.forward({&block, 1}, {}, output);
  test::keep_first(sequence, static_cast<int>(tokens.size()));
  return {test::rows_of(output),
          {output.features.begin(),
           output.features.begin() + static_cast<std::ptrdiff_t>(states.size())}};
}

// Logits of the text's rows in one pass, and of the rows after them, one pass each.
Rows logits_of(Loaded& loaded, const GoldenModule& golden) {
  const std::span<const TokenId> tokens = golden.tokens;
  const std::size_t n_known = golden.n_text - 1;
  std::vector<float> states = states_of(loaded, tokens.first(golden.n_text));
  const std::size_t dim = states.size() / golden.n_text;
  states.resize(n_known * dim);
  const auto sequence = loaded.module->open({});
  Given given = run(*loaded.module, *sequence, tokens.subspan(1, n_known), states);
  Rows logits = given.logits;
  for (std::size_t at = golden.n_text; at + 1 < golden.tokens.size(); ++at) {
    const std::vector<float> last(given.states.end() - static_cast<std::ptrdiff_t>(dim),
                                  given.states.end());
    given = run(*loaded.module, *sequence, tokens.subspan(at, 1), last);
    logits.push_back(given.logits.front());
  }
  return logits;
}

class MtpModulesGolden : public ::testing::TestWithParam<std::string> {};

// The bound is that of families_test.cc; the script asserts that a mistake moves logits by 1e-3.
TEST_P(MtpModulesGolden, HaveTheLogitsOfTheProgram) {
  const GoldenModule golden(GetParam());
  const test::TemporaryDirectory directory;
  golden.write_directory(directory.path());
  Loaded loaded = load(directory.path());
  const Rows logits = logits_of(loaded, golden);
  ASSERT_EQ(logits.size(), golden.logits.size());
  double largest = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    for (std::size_t j = 0; j < logits[i].size(); ++j) {
      const double difference = std::fabs(logits[i][j] - golden.logits[i][j]);
      if (!(difference <= largest)) largest = difference;  // NaN is kept
    }
  }
  EXPECT_LE(largest, 2e-4);
  // The drafted tokens after the text.
  for (std::size_t at = golden.n_text; at < golden.tokens.size(); ++at) {
    const Row& row = logits.at(at - 2);
    EXPECT_EQ(std::max_element(row.begin(), row.end()) - row.begin(), golden.tokens[at]);
  }
}

TEST_P(MtpModulesGolden, HaveTheBitsOfTheDirectoryInGguf) {
  const GoldenModule golden(GetParam());
  const test::TemporaryDirectory directory;
  golden.write_directory(directory.path());
  Loaded left = load(directory.path());
  Loaded right = load(golden.gguf());
  test::expect_same_bits(logits_of(left, golden), 0, logits_of(right, golden));
}

// A row's bits do not depend on how it was computed: in one pass, one token per pass, or as a
// tree's node.
TEST_P(MtpModulesGolden, HaveTheBitsOfOneTokenAPass) {
  const GoldenModule golden(GetParam());
  const std::span<const TokenId> tokens = std::span(golden.tokens).first(golden.n_text);
  for (const test::NamedTable& table : test::runnable_tables()) {
    for (const WeightKind weights : {WeightKind::int8, WeightKind::bf16}) {
      SCOPED_TRACE(table.name);
      Loaded loaded = load(
          golden.gguf(),
          {.weights = weights, .kv = kernels::KvKind::bf16, .table = table.table, .n_threads = 2});
      std::vector<float> states = states_of(loaded, tokens);
      const std::size_t dim = states.size() / tokens.size();
      const std::size_t n = tokens.size() - 1;
      const auto at_once = loaded.module->open({});
      const Given expected =
          run(*loaded.module, *at_once, tokens.subspan(1), std::span(states).first(n * dim));
      const auto slow = loaded.module->open({});
      for (std::size_t i = 0; i < n; ++i) {
        const Given given = run(*loaded.module, *slow, tokens.subspan(i + 1, 1),
                                std::span<const float>(states).subspan(i * dim, dim));
        EXPECT_TRUE(test::same_bits(expected.logits[i], given.logits[0])) << "row " << i;
        EXPECT_TRUE(std::equal(given.states.begin(), given.states.end(),
                               expected.states.begin() + static_cast<std::ptrdiff_t>(i * dim)));
      }
      // The last two rows each come after a wrong sibling.
      const auto tree = loaded.module->open({});
      (void)run(*loaded.module, *tree, tokens.subspan(1, n - 2),
                std::span(states).first((n - 2) * dim));
      const std::vector<TokenId> nodes = {5, tokens[n - 1], 6, tokens[n]};
      const std::vector<int> parents = {-1, -1, 1, 1};
      std::vector<float> read;
      for (const std::size_t row : {n - 1, n - 2, n - 2, n - 1}) {
        read.insert(read.end(), states.begin() + static_cast<std::ptrdiff_t>(row * dim),
                    states.begin() + static_cast<std::ptrdiff_t>((row + 1) * dim));
      }
      const TokenBlock block{
          .sequence = tree.get(), .tokens = nodes, .parents = parents, .features = read};
      ForwardOutput output;
      loaded.module->forward({&block, 1}, {}, output);
      const Rows rows = test::rows_of(output);
      EXPECT_TRUE(test::same_bits(rows[1], expected.logits[n - 2]));
      EXPECT_TRUE(test::same_bits(rows[3], expected.logits[n - 1]));
    }
  }
}

// The plain model reads no weight of the module and misses none.
TEST_P(MtpModulesGolden, LeaveTheTargetAsItIs) {
  const GoldenModule golden(GetParam());
  const test::TemporaryDirectory directory;
  golden.write_directory(directory.path());
  EXPECT_TRUE(has_mtp_modules(directory.path()));
  EXPECT_TRUE(has_mtp_modules(golden.gguf()));
  EXPECT_FALSE(has_mtp_modules(test::golden_directory(golden.base)));
  EXPECT_FALSE(has_mtp_modules(test::golden_directory(golden.base) / "model.gguf"));
  const test::GoldenModel plain(golden.base);
  const auto without = test::load_f32(plain.directory);
  const auto expected_sequence = without->open({});
  const Rows expected = test::run_block(*without, *expected_sequence, plain.ids);
  for (const fs::path& path : {directory.path(), golden.gguf()}) {
    const auto with = test::load_f32(path);
    EXPECT_TRUE(with->warnings().empty());
    const auto sequence = with->open({});
    test::expect_same_bits(expected, 0, test::run_block(*with, *sequence, plain.ids));
  }
}

INSTANTIATE_TEST_SUITE_P(All, MtpModulesGolden, ::testing::ValuesIn(test::golden_modules()),
                         [](const auto& info) { return info.param; });

// As Qwen3.5 is published: the text model's tensors have another prefix, the module's are beside
// them.
TEST(MtpModules, StandBesideATextPart) {
  const GoldenModule golden("qwen3_5");
  const test::TemporaryDirectory directory;
  golden.write_directory(directory.path() / "plain");
  const auto source = open_safetensors_directory(directory.path() / "plain");
  std::vector<std::vector<float>> values;
  values.reserve(source->tensors().size());
  std::vector<NamedValues> named;
  for (const TensorView& tensor : source->tensors()) {
    values.emplace_back(static_cast<std::size_t>(tensor.n_elements()));
    decode_rows(tensor, 0, tensor.n_elements() / tensor.shape.back(), values.back());
    const bool is_of_text = tensor.name.starts_with("model.");
    named.push_back({.name = is_of_text ? "model.language_" + tensor.name : tensor.name,
                     .shape = tensor.shape,
                     .values = values.back()});
  }
  fs::create_directories(directory.path() / "whole");
  write_safetensors(directory.path() / "whole" / "model.safetensors", named, ElementType::bf16);
  nlohmann::json text = test::json_of(directory.path() / "plain" / "config.json");
  text.erase("architectures");
  std::ofstream(directory.path() / "whole" / "config.json") << nlohmann::json{
      {"architectures", {"Qwen3_5ForConditionalGeneration"}},
      {"model_type", "qwen3_5"},
      {"tie_word_embeddings", text["tie_word_embeddings"]},
      {"text_config", text}}.dump();
  EXPECT_TRUE(has_mtp_modules(directory.path() / "whole"));
  Loaded plain = load(directory.path() / "plain");
  Loaded whole = load(directory.path() / "whole");
  test::expect_same_bits(logits_of(plain, golden), 0, logits_of(whole, golden));
}

std::string refusal(const fs::path& path, LanguageModel& target) {
  try {
    (void)load_mtp_modules(path, target, {.n_threads = 1});
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    return error.what();
  }
  return "";
}

TEST(MtpModules, AreMissedByName) {
  for (const auto& [base, missing] :
       {std::pair{"deepseek_v3_plain", "modules (model.layers.2.eh_proj.weight), got none"},
        std::pair{"qwen3_5_plain", "modules (mtp.fc.weight), got none"},
        std::pair{"glm4_moe_plain", "modules (model.layers.2.eh_proj.weight), got none"},
        std::pair{"deepseek_v3_plain/model.gguf", "modules (blk.2.nextn.eh_proj.weight), got none"},
        std::pair{"qwen3_next_plain/model.gguf", "modules (blk.4.nextn.eh_proj.weight), got none"},
        std::pair{"llama_plain/model.gguf", "modules, which files of llama do not have, got none"},
        std::pair{"nemotron_h_latent/model.gguf", "modules, which files of nemotron_h do not have"},
        std::pair{"llama_plain",
                  "(num_nextn_predict_layers in config.json; modules in a folder"}}) {
    const fs::path path = test::golden_directory(base);
    const auto target = load_model(path, {.n_threads = 1});
    EXPECT_THAT(refusal(path, *target), HasSubstr(missing));
  }
}

// A missing part, an unknown one, and a module of another model.
TEST(MtpModules, RefuseOthersByName) {
  const GoldenModule golden("qwen3_5");
  const auto with = [&](const std::string& from, const std::string& to) {
    const test::TemporaryDirectory directory;
    golden.write_directory(directory.path());
    const fs::path shard = directory.path() / "model-00002-of-00002.safetensors";
    std::ifstream file(shard, std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(file), {}};
    bytes.replace(bytes.find(from), from.size(), to);
    std::ofstream(shard, std::ios::binary) << bytes;
    const fs::path index = directory.path() / "model.safetensors.index.json";
    std::string names;
    std::getline(std::ifstream(index), names, '\0');
    names.replace(names.find(from), from.size(), to);
    std::ofstream(index) << names;
    const auto target = load_model(directory.path(), {.n_threads = 1});
    return refusal(directory.path(), *target);
  };
  EXPECT_THAT(with("mtp.norm.weight", "mtp.mean.weight"), HasSubstr("mtp.norm.weight"));
  // A second layer in a module is not supported.
  EXPECT_THAT(with("mtp.layers.0.self_attn.q_norm.weight", "mtp.layers.1.self_attn.q_norm.weight"),
              HasSubstr("q_norm.weight"));
  const auto other = load_model(test::golden_directory("qwen3_5_grouped"), {.n_threads = 1});
  EXPECT_THAT(refusal(golden.gguf(), *other), HasSubstr("the target's width of 32, got 24"));
}

}  // namespace
}  // namespace outrider
