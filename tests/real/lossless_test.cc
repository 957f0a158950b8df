// SPDX-License-Identifier: Apache-2.0
// Promise 2 on real weights: golden texts, and drafted output bit-identical to plain decoding, ids
// and logits. Covered are every chain length, tree shape, weight type and kernel table; for
// quantised models across tables, too.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "outrider/generate.h"
#include "outrider/model.h"
#include "tests/support/nightly.h"

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

class Lossless : public ::testing::TestWithParam<std::string> {};

TEST_P(Lossless, DraftedOutputIsPlainOutputBitForBit) {
  if (!have_models()) GTEST_SKIP() << "no shared data folder";
  const std::string weights = GetParam();
  const GenerateOptions greedy{.max_tokens = 96};
  const GenerateOptions sampled{
      .max_tokens = 48, .sampling = {.temperature = 0.9, .top_k = 40}, .seed = 11};
  std::vector<Output> plain_of_tables;
  for (const std::string& table : runnable_tables()) {
    const ModelOptions load{.weights = weights, .kernels = table};
    const auto model = Model::load(models() / "stories260K", load);
    EXPECT_EQ(model->summary().kernels, table);
    const Output plain = generate_all(model, {}, greedy, false);
    const Output plain_sampled = generate_all(model, {}, sampled, false);
    plain_of_tables.push_back(plain);
    for (int length = 1; length <= 8; ++length) {
      SpeculationOptions options{.drafter = "model:" + (models() / "weak260K").string(),
                                 .tree = "chain:length=" + std::to_string(length),
                                 .drafter_options = load};
      // Outside the nightly run, the verifications take turns.
      constexpr const char* kVerify[] = {"exact", "block", "coupled"};
      for (int turn = 0; turn < 3; ++turn) {
        if (turn != length % 3 && !test::nightly()) continue;
        options.verify = kVerify[turn];
        EXPECT_EQ(generate_all(model, options, greedy, length % 2 == 0), plain)
            << table << " " << options.verify << " " << length;
      }
      options.verify = "coupled";
      EXPECT_EQ(generate_all(model, options, sampled, length % 2 == 1), plain_sampled)
          << table << " coupled, sampled, " << length;
    }
  }
  ASSERT_FALSE(plain_of_tables.empty());
  if (weights == "int8" || weights == "int4") {
    for (const Output& plain : plain_of_tables) EXPECT_EQ(plain, plain_of_tables.front());
  }
}

TEST_P(Lossless, TreesGivePlainOutputBitForBit) {
  if (!have_models()) GTEST_SKIP() << "no shared data folder";
  const GenerateOptions greedy{.max_tokens = 48};
  const GenerateOptions sampled{
      .max_tokens = 32, .sampling = {.temperature = 0.9, .top_k = 40}, .seed = 12};
  constexpr const char* kTrees[] = {"widths:4,2,2", "widths:3,2,siblings=with", "static:eagle1",
                                    "static:medusa,siblings=top",
                                    "dynamic:total=24,depth=6,topk=5"};
  constexpr const char* kVerify[] = {"exact", "traversal", "coupled"};
  // Every tree on every table; the verifications take turns.
  std::size_t turn = 0;
  for (const std::string& table : runnable_tables()) {
    const ModelOptions load{.weights = GetParam(), .kernels = table};
    const auto model = Model::load(models() / "stories260K", load);
    const Output plain = generate_all(model, {}, greedy, false);
    const Output plain_sampled = generate_all(model, {}, sampled, false);
    for (const char* tree : kTrees) {
      SpeculationOptions options{.drafter = "model:" + (models() / "weak260K").string(),
                                 .tree = tree,
                                 .verify = kVerify[turn % 3],
                                 .drafter_options = load};
      EXPECT_EQ(generate_all(model, options, greedy, turn % 2 == 0), plain)
          << table << " " << options.verify << " " << tree;
      options.verify = "coupled";
      EXPECT_EQ(generate_all(model, options, sampled, turn % 2 == 1), plain_sampled)
          << table << " coupled, sampled, " << tree;
      ++turn;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, Lossless, ::testing::Values("f32", "bf16", "int8", "int4"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace outrider
