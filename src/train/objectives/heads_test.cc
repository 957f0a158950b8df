// SPDX-License-Identifier: Apache-2.0
// Heads on a frozen target: compares their losses with a program written from the papers' equations
// (tests/golden/make/make_heads_golden.py) and with finite differences, and tests refusals.
// (Exports: heads_export_test.cc; learning: heads_learning_test.cc.)
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "outrider/error.h"
#include "tests/support/goldens/golden_heads.h"
#include "tests/support/gradient_differences.h"
#include "tests/support/near.h"
#include "tests/support/one_batch.h"
#include "train/losses/draft_vocabulary.h"
#include "train/objective.h"
#include "train/objectives/eagle.h"
#include "train/objectives/eagle3.h"
#include "train/objectives/medusa.h"

namespace outrider::train {
namespace {

using test::as_golden;
using test::expect_gradient_is_difference;
using test::fill_with_golden_values;
using test::golden_heads;
using test::GoldenHeads;
using test::kGoldenTolerance;
using test::near;
using test::OneBatch;
using test::scattered_entries;
using ::testing::ElementsAre;
using Json = nlohmann::json;

void expect_golden(Objective& objective, const Json& expected, const std::string& held_out_loss) {
  fill_with_golden_values(objective.trained());
  const Loss loss = objective.loss(0);
  EXPECT_TRUE(near(loss.value.item<double>(), expected["loss"], kGoldenTolerance));
  EXPECT_FALSE(loss.metrics.empty());
  for (const auto& [name, value] : as_golden(loss.metrics)) {
    ASSERT_TRUE(expected.contains(name)) << name;
    EXPECT_TRUE(near(value, expected[name], kGoldenTolerance)) << name;
  }
  auto held_out = as_golden(objective.evaluate());
  EXPECT_TRUE(near(held_out["loss"], expected[held_out_loss], kGoldenTolerance));
  held_out.erase("loss");
  for (const auto& [name, value] : held_out) {
    ASSERT_TRUE(expected.contains(name)) << name;
    EXPECT_TRUE(near(value, expected[name], kGoldenTolerance)) << name;
  }
  // No figure of the program is missing here.
  for (const auto& [name, value] : expected.items()) {
    EXPECT_TRUE(name == "loss" || name == "lm_loss" || held_out.contains(name)) << name;
  }
}

TEST_F(GoldenHeads, Eagle) {
  for (const auto& [inputs, expected] : golden_heads()["eagle"].items()) {
    SCOPED_TRACE(inputs);
    expect_golden(*eagle(eagle_inputs_named(inputs)), expected, "loss");
    EXPECT_EQ(name_of(eagle_inputs_named(inputs)), inputs);
  }
  EXPECT_THROW(eagle_inputs_named("both"), UsageError);
}

TEST_F(GoldenHeads, Eagle3) {
  expect_golden(*eagle3(false), golden_heads()["eagle3"]["whole"], "loss");
  expect_golden(*eagle3(true), golden_heads()["eagle3"]["reduced"], "loss");
}

TEST_F(GoldenHeads, Medusa) {
  expect_golden(*medusa(true), golden_heads()["medusa"]["own"], "loss");
  expect_golden(*medusa(false), golden_heads()["medusa"]["shared"], "loss");
}

TEST_F(GoldenHeads, MultiTokenPrediction) {
  expect_golden(*mtp(), golden_heads()["mtp"], "loss");
  expect_golden(*lm(), golden_heads()["lm"], "lm_loss");
}

// Weights are of order one and pass several norms, so third derivatives may reach about a hundred:
// 1e-8 at the step of the differences. A wrong term would be a thousand times the tolerance.
void expect_gradients_are_differences(Objective& objective) {
  torch::nn::Module& module = objective.trained();
  module.to(torch::kFloat64);
  fill_with_golden_values(module);
  const auto loss = [&] {
    torch::manual_seed(5);  // the same noise each time
    return objective.loss(0).value;
  };
  module.zero_grad();
  loss().backward();
  for (const auto& parameter : module.named_parameters()) {
    expect_gradient_is_difference(parameter.value(), loss, scattered_entries(parameter.value(), 2),
                                  1e-7, parameter.key());
  }
}

TEST_F(GoldenHeads, GradientsAreDifferences) {
  expect_gradients_are_differences(*eagle(EagleInputs::feature_shifted_token, 0.1));
  expect_gradients_are_differences(*eagle(EagleInputs::token));
  expect_gradients_are_differences(*eagle3(true));
  expect_gradients_are_differences(*parallel_eagle());
  expect_gradients_are_differences(*medusa(true));
  expect_gradients_are_differences(*medusa(false));
  expect_gradients_are_differences(*mtp());
  expect_gradients_are_differences(*lm());
}

TEST_F(GoldenHeads, NoiseIsUniformAndOfTraining) {
  const auto quiet = eagle(EagleInputs::feature_shifted_token);
  const auto noisy = eagle(EagleInputs::feature_shifted_token, 0.1);
  fill_with_golden_values(quiet->trained());
  fill_with_golden_values(noisy->trained());
  const auto loss = [](Objective& objective, int seed) {
    torch::manual_seed(static_cast<std::uint64_t>(seed));
    return objective.loss(0).value.item<double>();
  };
  EXPECT_EQ(loss(*quiet, 1), loss(*quiet, 2));
  EXPECT_NE(loss(*noisy, 1), loss(*noisy, 2));
  EXPECT_EQ(loss(*noisy, 1), loss(*noisy, 1));
  EXPECT_EQ(noisy->evaluate(), quiet->evaluate());
}

// The sources of a draft vocabulary and of the features.

TEST(Eagle3, TakesFeaturesOfThreeDepths) {
  EXPECT_THAT(eagle3_feature_layers(32), ElementsAre(2, 16, 29));
  EXPECT_THAT(eagle3_feature_layers(7), ElementsAre(2, 3, 4));
  EXPECT_THAT(eagle3_feature_layers(6), ElementsAre(1, 3, 5));
  EXPECT_THAT(eagle3_feature_layers(5), ElementsAre(1, 2, 4));
  EXPECT_THAT(eagle3_feature_layers(2), ElementsAre(0, 1, 2));
  EXPECT_THAT(eagle3_feature_layers(1), ElementsAre(0, 0, 1));
}

TEST(Eagle3, TheDraftVocabularyIsWhatTheTextSaysMost) {
  const std::vector<TokenId> text = {5, 1, 5, 2, 5, 2, 7, 0};
  EXPECT_THAT(most_frequent_tokens(text, 2, 9), ElementsAre(2, 5));
  // 7 is equally rare, but later.
  EXPECT_THAT(most_frequent_tokens(text, 4, 9), ElementsAre(0, 1, 2, 5));
  EXPECT_THAT(most_frequent_tokens(text, 9, 9), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8));
}

TEST_F(GoldenHeads, RefusesWhatDoesNotFit) {
  EXPECT_THROW(make_eagle3({.run = run_, .n_steps = 0}), UsageError);
  const std::vector<std::vector<TokenId>> wrong = {{3, 2}, {3, 3}, {3, 23}, {-1, 3}};
  for (const std::vector<TokenId>& ids : wrong) {
    EXPECT_THROW(make_eagle3({.run = run_, .draft_vocabulary = ids}), Error);
  }
  EXPECT_THROW(make_medusa({.run = run_, .n_heads = 0}), UsageError);
  Batch strange = run_.batches->batch(0);
  strange.tokens[3] = 23;  // of another tokenizer
  run_.batches = std::make_shared<OneBatch>(strange);
  for (const auto& objective : {eagle(EagleInputs::token), medusa(false), mtp()}) {
    try {
      objective->loss(0);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace outrider::train
