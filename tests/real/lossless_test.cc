// SPDX-License-Identifier: Apache-2.0
// Promise 2 on real weights: golden texts, and drafted output bit-identical to plain decoding, ids
// and logits. Covered are every chain length, tree shape, verification, weight type and kernel
// table: by day any two of them together, in nightly runs all. For quantised models plain texts are
// compared across tables, too.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "outrider/generate.h"
#include "outrider/model.h"
#include "tests/support/nightly.h"
#include "tests/support/pairs_of_the_day.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

fs::path models() { return fs::path(OUTRIDER_SHARED_DATA) / "models"; }
bool have_models() { return fs::exists(models() / "stories260K" / "golden.json"); }

nlohmann::json goldens(const std::string& model) {
  std::ifstream file(models() / model / "golden.json");
  return nlohmann::json::parse(file);
}

std::vector<std::string> prompts() {
  std::vector<std::string> all;
  for (const auto& golden : goldens("stories260K")) all.push_back(golden.at("prompt"));
  return all;
}

std::vector<std::string> runnable_tables() {
  std::vector<std::string> names;
  for (const auto& [name, runs] : kernel_tables()) {
    if (runs) names.push_back(name);
  }
  return names;
}

class GoldenTexts : public ::testing::TestWithParam<std::tuple<std::string, bool>> {};

TEST_P(GoldenTexts, GreedyIdsAreHuggingFaces) {
  if (!have_models()) GTEST_SKIP() << "no shared data folder";
  const auto& [name, gguf] = GetParam();
  const fs::path path = gguf ? models() / name / (name + "-f32.gguf") : models() / name;
  const auto model = Model::load(path, {.weights = "f32"});
  Generator generator(model);
  for (const auto& golden : goldens(name)) {
    const std::string prompt = golden.at("prompt");
    const std::vector<TokenId> prompt_ids = golden.at("prompt_ids");
    const std::vector<TokenId> greedy_ids = golden.at("greedy_ids");
    EXPECT_EQ(model->tokenizer().encode(prompt, true), prompt_ids) << prompt;
    const GenerateResult result = generator.generate(
        prompt, {.max_tokens = static_cast<int>(greedy_ids.size()), .keep_logits = true});
    EXPECT_EQ(result.ids, greedy_ids) << prompt;
    const std::vector<float> last = golden.at("last_logits_first16");
    for (std::size_t index = 0; index < last.size(); ++index) {
      EXPECT_NEAR(result.logits[index], last[index], 1e-4) << prompt << " logit " << index;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, GoldenTexts,
                         ::testing::Combine(::testing::Values("stories260K", "weak260K"),
                                            ::testing::Bool()),
                         [](const auto& info) {
                           return std::get<0>(info.param) +
                                  (std::get<1>(info.param) ? "Gguf" : "HuggingFace");
                         });

struct Output {
  std::vector<std::vector<TokenId>> ids;
  std::vector<std::vector<float>> logits;

  bool operator==(const Output& other) const {
    if (ids != other.ids || logits.size() != other.logits.size()) return false;
    for (std::size_t index = 0; index < logits.size(); ++index) {
      const auto& a = logits[index];
      const auto& b = other.logits[index];
      if (a.size() != b.size() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) != 0) {
        return false;
      }
    }
    return true;
  }
};

Output generate_all(const std::shared_ptr<const Model>& model, const SpeculationOptions& options,
                    const GenerateOptions& generate, bool together) {
  Generator generator(model, options);
  std::vector<GenerateRequest> requests;
  for (const std::string& prompt : prompts()) {
    requests.push_back({model->tokenizer().encode(prompt, true), generate});
    requests.back().options.keep_logits = true;
  }
  Output output;
  const auto add = [&output](GenerateResult&& result) {
    output.ids.push_back(std::move(result.ids));
    output.logits.push_back(std::move(result.logits));
  };
  if (together) {
    for (GenerateResult& result : generator.generate(requests)) add(std::move(result));
  } else {
    for (const GenerateRequest& request : requests) {
      add(std::move(generator.generate({&request, 1}).front()));
    }
  }
  return output;
}

// A draft against plain decoding. `sampled` texts are coupled.
struct Cell {
  std::string weights;
  std::string table;
  std::string tree;
  std::string verify;
  bool is_sampled = false;
  bool is_together = false;  // all prompts in one batch
};

const std::vector<std::string> kWeights = {"f32", "bf16", "int8", "int4"};

// Of all, any two of their values; in nightly runs all.
std::vector<Cell> cells_of_the_day(const std::vector<std::string>& trees,
                                   const std::vector<std::string>& verifications) {
  std::vector<Cell> all;
  // Quick tables first: kernel_tables() begins with the slowest.
  std::vector<std::string> tables = runnable_tables();
  std::reverse(tables.begin(), tables.end());
  for (const std::string& table : tables) {
    for (const std::string& weights : kWeights) {
      for (std::size_t tree = 0; tree < trees.size(); ++tree) {
        bool is_together = tree % 2 == 0;
        for (const std::string& verify : verifications) {
          all.push_back({weights, table, trees[tree], verify, false, is_together});
          is_together = !is_together;
        }
        all.push_back({weights, table, trees[tree], "coupled", true, is_together});
      }
    }
  }
  return test::pairs_of_the_day(all, [](const Cell& cell) {
    return test::CaseValues{cell.weights, cell.table, cell.tree,
                            cell.verify + (cell.is_sampled ? ", sampled" : "")};
  });
}

class Lossless : public ::testing::TestWithParam<std::string> {
 protected:
  // Runs the cells of these weights. Returns the greedy plain texts of all tables.
  static std::vector<Output> expect_plain_output(const std::vector<Cell>& cells, int max_tokens,
                                                 std::uint64_t seed) {
    const GenerateOptions greedy{.max_tokens = max_tokens};
    const GenerateOptions sampled{
        .max_tokens = 48, .sampling = {.temperature = 0.9, .top_k = 40}, .seed = seed};
    std::vector<Output> plain_of_tables;
    for (const std::string& table : runnable_tables()) {
      // In nightly runs on all cores, whose threads wait for one another where others compute.
      const ModelOptions load{
          .weights = GetParam(), .threads = test::nightly() ? 0 : 1, .kernels = table};
      const auto model = Model::load(models() / "stories260K", load);
      EXPECT_EQ(model->summary().kernels, table);
      plain_of_tables.push_back(generate_all(model, {}, greedy, false));
      const Output& plain = plain_of_tables.back();
      std::optional<Output> plain_sampled;
      int n_cells = 0;
      for (const Cell& cell : cells) {
        if (cell.weights != GetParam() || cell.table != table) continue;
        const SpeculationOptions options{.drafter = "model:" + (models() / "weak260K").string(),
                                         .tree = cell.tree,
                                         .verify = cell.verify,
                                         .drafter_options = load};
        if (cell.is_sampled && !plain_sampled) {
          plain_sampled = generate_all(model, {}, sampled, false);
        }
        const Output drafted =
            generate_all(model, options, cell.is_sampled ? sampled : greedy, cell.is_together);
        EXPECT_EQ(drafted, cell.is_sampled ? *plain_sampled : plain)
            << table << " " << cell.verify << (cell.is_sampled ? ", sampled, " : " ") << cell.tree;
        ++n_cells;
      }
      EXPECT_GT(n_cells, 0) << table;
    }
    return plain_of_tables;
  }
};

TEST_P(Lossless, DraftedOutputIsPlainOutputBitForBit) {
  if (!have_models()) GTEST_SKIP() << "no shared data folder";
  std::vector<std::string> chains;
  for (int length = 1; length <= 8; ++length) {
    chains.push_back("chain:length=" + std::to_string(length));
  }
  static const std::vector<Cell> kCells = cells_of_the_day(chains, {"exact", "block", "coupled"});
  const std::vector<Output> plain_of_tables = expect_plain_output(kCells, 96, 11);
  ASSERT_FALSE(plain_of_tables.empty());
  if (GetParam() == "int8" || GetParam() == "int4") {
    for (const Output& plain : plain_of_tables) EXPECT_EQ(plain, plain_of_tables.front());
  }
}

TEST_P(Lossless, TreesGivePlainOutputBitForBit) {
  if (!have_models()) GTEST_SKIP() << "no shared data folder";
  static const std::vector<Cell> kCells =
      cells_of_the_day({"widths:4,2,2", "widths:3,2,siblings=with", "static:eagle1",
                        "static:medusa,siblings=top", "dynamic:total=24,depth=6,topk=5"},
                       {"exact", "traversal", "coupled"});
  expect_plain_output(kCells, 48, 12);
}

INSTANTIATE_TEST_SUITE_P(, Lossless, ::testing::ValuesIn(kWeights),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace outrider
