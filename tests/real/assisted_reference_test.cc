// SPDX-License-Identifier: Apache-2.0
// Greedy speculation on the real pair, compared with assisted generation of Hugging Face: the same
// ids, and the same number of accepted draft tokens in every round.
//
// tests/golden/make/make_assisted_golden.py made the reference and says how its rounds map to ours.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "outrider/generate.h"
#include "outrider/model.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

fs::path models() { return fs::path(OUTRIDER_SHARED_DATA) / "models"; }

const nlohmann::json& reference() {
  static const nlohmann::json document = nlohmann::json::parse(std::ifstream(
      fs::path(OUTRIDER_SOURCE_DIR) / "tests" / "golden" / "assisted_story_pair.json"));
  return document;
}

// The parameter is the draft length.
class AssistedReference : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    for (const char* name : {"stories260K", "weak260K"}) {
      if (!fs::exists(models() / name / "config.json")) {
        GTEST_SKIP() << "no model " << name << " in the shared data folder";
      }
    }
  }

  // All prompts of the reference at once: a text does not depend on the others of its batch.
  std::vector<GenerateResult> generate(const std::vector<GenerateRequest>& requests) {
    return generate(requests, {}, "chain:length=" + std::to_string(GetParam()));
  }
  std::vector<GenerateResult> generate(const std::vector<GenerateRequest>& requests,
                                       const std::string& drafter_keys, const std::string& tree) {
    const ModelOptions options{.weights = "f32", .threads = 1};
    Generator generator(Model::load(models() / "stories260K", options),
                        {.drafter = "model:" + (models() / "weak260K").string() + drafter_keys,
                         .tree = tree,
                         .drafter_options = options});
    return generator.generate(requests);
  }

  GenerateRequest request(const nlohmann::json& prompt) {
    return {.prompt = prompt.at("prompt_ids").get<std::vector<TokenId>>(),
            .options = {.max_tokens = reference().at("max_new_tokens").get<int>()}};
  }

  std::vector<int> accepted(const nlohmann::json& entry) {
    return entry.at("accepted").at(std::to_string(GetParam())).get<std::vector<int>>();
  }
};

TEST_P(AssistedReference, SameIdsAndSameAcceptedCountInEveryRound) {
  const nlohmann::json& prompts = reference().at("prompts");
  ASSERT_GE(prompts.size(), 12U);
  std::vector<GenerateRequest> requests;
  for (const nlohmann::json& prompt : prompts) requests.push_back(request(prompt));
  const std::vector<GenerateResult> results = generate(requests);
  ASSERT_EQ(results.size(), prompts.size());
  for (std::size_t index = 0; index < results.size(); ++index) {
    SCOPED_TRACE(prompts[index].at("prompt").get<std::string>());
    EXPECT_EQ(results[index].ids, prompts[index].at("generated_ids").get<std::vector<TokenId>>());
    EXPECT_EQ(results[index].accepted_per_round, accepted(prompts[index]));
    EXPECT_EQ(results[index].finish_reason, FinishReason::length);
  }
}

TEST_P(AssistedReference, TheHeuristicScheduleTakesTheSameRounds) {
  const nlohmann::json& prompts = reference().at("prompts");
  const std::string first = std::to_string(GetParam());
  std::vector<GenerateRequest> requests;
  for (const nlohmann::json& prompt : prompts) requests.push_back(request(prompt));
  const std::vector<GenerateResult> results =
      generate(requests, ",length=" + first + ",schedule=heuristic", "");
  for (std::size_t index = 0; index < results.size(); ++index) {
    SCOPED_TRACE(prompts[index].at("prompt").get<std::string>());
    EXPECT_EQ(results[index].ids, prompts[index].at("generated_ids").get<std::vector<TokenId>>());
    EXPECT_EQ(results[index].accepted_per_round,
              prompts[index].at("accepted_heuristic").at(first).get<std::vector<int>>());
  }
}

// With an end token, the reference counts a drafted end token as the target's. Here it is an
// accepted draft token, so that the last round is higher by one.
TEST_P(AssistedReference, SameRoundsUpToAnEndToken) {
  const nlohmann::json& ending = reference().at("ending");
  ASSERT_GE(ending.size(), 1U);
  std::vector<GenerateRequest> requests;
  for (const nlohmann::json& entry : ending) {
    requests.push_back(
        request(reference().at("prompts").at(entry.at("prompt").get<std::size_t>())));
    requests.back().options.stop_tokens = {reference().at("ending_token").get<TokenId>()};
  }
  const std::vector<GenerateResult> results = generate(requests);
  ASSERT_EQ(results.size(), ending.size());
  for (std::size_t index = 0; index < results.size(); ++index) {
    const nlohmann::json& entry = ending[index];
    const nlohmann::json& prompt =
        reference().at("prompts").at(entry.at("prompt").get<std::size_t>());
    SCOPED_TRACE(prompt.at("prompt").get<std::string>());
    auto ids = prompt.at("generated_ids").get<std::vector<TokenId>>();
    ids.resize(entry.at("n_generated").get<std::size_t>());
    EXPECT_EQ(results[index].ids, ids);
    std::vector<int> rounds = accepted(entry);
    const auto drafted = entry.at("end_token_drafted").get<std::vector<int>>();
    if (std::find(drafted.begin(), drafted.end(), GetParam()) != drafted.end()) ++rounds.back();
    EXPECT_EQ(results[index].accepted_per_round, rounds);
    EXPECT_EQ(results[index].finish_reason, FinishReason::stop);
  }
}

INSTANTIATE_TEST_SUITE_P(DraftLength, AssistedReference, ::testing::Range(1, 9));

}  // namespace
}  // namespace outrider
