// SPDX-License-Identifier: Apache-2.0
// The two real models in the shared data folder, compared with Hugging Face transformers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "model/load_model.h"
#include "tests/support/models/run_model.h"

namespace outrider {
namespace {

using test::Row;
using test::Rows;

const std::filesystem::path kModels = std::filesystem::path(OUTRIDER_SHARED_DATA) / "models";

TokenId argmax(const Row& row) {
  return static_cast<TokenId>(std::max_element(row.begin(), row.end()) - row.begin());
}

class StoryModel : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    directory_ = kModels / GetParam();
    if (!std::filesystem::exists(directory_)) GTEST_SKIP() << "no " << directory_;
    goldens_ = nlohmann::json::parse(std::ifstream(directory_ / "golden.json"));
    ASSERT_EQ(goldens_.size(), 4u);
  }
  std::filesystem::path gguf() const { return directory_ / (GetParam() + "-f32.gguf"); }

  void check(const std::filesystem::path& path) {
    const auto model = load_model(path);
    for (const auto& golden : goldens_) {
      const auto prompt = golden["prompt_ids"].get<std::vector<TokenId>>();
      const auto greedy = golden["greedy_ids"].get<std::vector<TokenId>>();
      ASSERT_GE(greedy.size(), 40u);
      const auto sequence = model->open({});
      Row last = test::run_and_keep(*model, *sequence, prompt).back();

      // The golden logits are those after the first generated token.
      const auto first16 = golden["last_logits_first16"].get<std::vector<float>>();
      ASSERT_EQ(first16.size(), 16u);
      for (std::size_t i = 0; i < 16; ++i) EXPECT_NEAR(last[i], first16[i], 1e-4);
      const double largest = *std::max_element(last.begin(), last.end());
      double sum = 0;
      for (const float logit : last) sum += std::exp(logit - largest);
      EXPECT_NEAR(largest + std::log(sum), golden["logsumexp"].get<double>(), 1e-4);

      std::vector<TokenId> ids;
      while (ids.size() < greedy.size()) {
        ids.push_back(argmax(last));
        last = test::run_and_keep(*model, *sequence, {&ids.back(), 1}).back();
      }
      EXPECT_EQ(ids, greedy) << golden["prompt"];
    }
  }

  std::filesystem::path directory_;
  nlohmann::json goldens_;
};

TEST_P(StoryModel, GivesTheGoldenIdsFromHuggingFaceFiles) { check(directory_); }
TEST_P(StoryModel, GivesTheGoldenIdsFromGguf) { check(gguf()); }

// The files differ in the order of query and key rows; the loaded models are equal.
TEST_P(StoryModel, HasTheSameBitsFromBothFiles) {
  const auto from_directory = load_model(directory_);
  const auto from_gguf = load_model(gguf());
  for (const auto& golden : goldens_) {
    auto tokens = golden["prompt_ids"].get<std::vector<TokenId>>();
    const auto greedy = golden["greedy_ids"].get<std::vector<TokenId>>();
    tokens.insert(tokens.end(), greedy.begin(), greedy.end());
    const auto left = from_directory->open({});
    const auto right = from_gguf->open({});
    test::expect_same_bits(test::run_block(*from_directory, *left, tokens), 0,
                           test::run_block(*from_gguf, *right, tokens));
  }
}

INSTANTIATE_TEST_SUITE_P(Both, StoryModel, ::testing::Values("stories260K", "weak260K"));

}  // namespace
}  // namespace outrider
