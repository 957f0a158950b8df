// SPDX-License-Identifier: Apache-2.0
#include "speculate/rules/router.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <string>

#include "outrider/error.h"
#include "tests/support/proofs/fixed_views.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

using ::testing::HasSubstr;

class RouterFile : public ::testing::Test {
 protected:
  RouterWeights read(const std::string& text) {
    const auto path = directory_.path() / "router.json";
    std::ofstream(path) << text;
    return read_router(path);
  }
  std::string refusal(const std::string& text) {
    try {
      read(text);
    } catch (const Error& error) {
      return error.what();
    }
    return "read";
  }

 private:
  test::TemporaryDirectory directory_;
};

TEST_F(RouterFile, IsRead) {
  const RouterWeights router = read(
      R"({"weights": {"agreement": -1, "draft_max": 2.5e-1}, "bias": -3, "version": 1,
          "threshold": 0.25, "format": "outrider-router"})");
  EXPECT_EQ(router.bias, -3);
  EXPECT_EQ(router.threshold, 0.25);
  EXPECT_EQ(router.weights, (RouterFeatures{0.25, 0, 0, 0, 0, -1}));
}

TEST_F(RouterFile, IsChecked) {
  const std::string head = R"({"format": "outrider-router", "version": 1, "bias": 0, )";
  EXPECT_EQ(refusal(head + R"("weights": {}})"), "read");
  EXPECT_THAT(refusal(head + R"("weights": {"mood": 1}})"), HasSubstr("features among draft_max"));
  EXPECT_THAT(refusal(head + R"("weights": {"draft_max": "1"}})"),
              HasSubstr("weights.draft_max: expected a number"));
  EXPECT_THAT(refusal(head + R"("weights": {"draft_max": 1, "draft_max": 2}})"),
              HasSubstr("'weights.draft_max' twice"));
  EXPECT_THAT(refusal(head + R"("weights": {"draft_max": {}}})"), HasSubstr("an object"));
  EXPECT_THAT(refusal(head + R"("weights": [1]})"), HasSubstr("an array"));
  EXPECT_THAT(refusal(head + R"("weights": 1})"), HasSubstr("an object {feature: number}"));
  EXPECT_THAT(refusal(head + R"("weights": {}, "threshold": 1.5})"), HasSubstr("from 0 to 1"));
  EXPECT_THAT(refusal(head + R"("weights": {}, "note": 1})"), HasSubstr("alone, got note"));
  EXPECT_THAT(refusal(head.substr(0, head.size() - 2) + "}"), HasSubstr("the key 'weights'"));
  EXPECT_THAT(refusal(R"({"format": "onnx"})"), HasSubstr("'outrider-router'"));
  EXPECT_THAT(refusal(R"({"version": 2})"), HasSubstr("version: expected 1, got 2"));
  EXPECT_THAT(refusal(R"({"bias": 1e999})"), HasSubstr("router.json"));
  EXPECT_THAT(refusal("[]"), HasSubstr("a JSON object"));
  EXPECT_THAT(refusal("{"), HasSubstr("syntax error"));
  EXPECT_THAT(refusal(""), HasSubstr("syntax error"));
  EXPECT_THROW(read_router("/nowhere/router.json"), Error);
}

TEST(Router, FeaturesAreTheRawDistributions) {
  const Distribution draft{{0, 1}, {0.75, 0.25}};
  const Distribution target{{0, 1}, {0.25, 0.75}};
  const RouterFeatures features = router_features(draft, target);
  const double entropy = -(0.75 * std::log(0.75) + 0.25 * std::log(0.25));
  EXPECT_NEAR(features[0], 0.75, 1e-15);
  EXPECT_NEAR(features[1], 0.75, 1e-15);
  EXPECT_NEAR(features[2], entropy, 1e-15);
  EXPECT_NEAR(features[3], entropy, 1e-15);
  EXPECT_NEAR(features[4], 0.5, 1e-15);
  EXPECT_EQ(features[5], 0);
  EXPECT_EQ(router_features(draft, draft)[5], 1);
}

TEST(Router, DefersAboveItsThreshold) {
  test::FixedViews views = test::views_of({0.75, 0.25}, {0.25, 0.75});
  const auto defers = [&](double bias, double threshold) {
    RouterWeights router{.bias = bias, .weights = {}, .threshold = threshold};
    router.weights[4] = 2;  // total variation 0.5: adds 1
    Distribution dist;
    RouterRule(router).rule_prob(views, 0, dist);
    return dist.probs == views.target_prob.probs;
  };
  EXPECT_TRUE(defers(-0.9, 0.5));
  EXPECT_FALSE(defers(-1.1, 0.5));
  const double logistic = 1 / (1 + std::exp(-1.5));
  EXPECT_TRUE(defers(0.5, logistic - 1e-9));
  EXPECT_FALSE(defers(0.5, logistic + 1e-9));
  EXPECT_TRUE(defers(-700, 0));
  EXPECT_FALSE(defers(700, 1));
}

}  // namespace
}  // namespace outrider
