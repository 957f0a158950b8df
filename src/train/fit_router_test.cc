// SPDX-License-Identifier: Apache-2.0
#include "train/fit_router.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "outrider/error.h"
#include "tests/support/models/tiny_model.h"
#include "tests/support/temporary_directory.h"

namespace outrider::train {
namespace {

// Positions at which the target is better exactly if the drafter is unsure.
std::vector<RouterSample> separable(int n) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::vector<RouterSample> samples;
  for (int i = 0; i < n; ++i) {
    RouterSample sample;
    for (double& feature : sample.features) feature = uniform(random);
    sample.total_variation = sample.features[4];
    const bool unsure = sample.features[0] < 0.4;  // draft_max
    sample.draft_loss = unsure ? 3 : 1;
    sample.target_loss = unsure ? 1 : 1.5;
    samples.push_back(sample);
  }
  return samples;
}

TEST(FitRouter, FindsTheDecisionThatCostsLeast) {
  const auto samples = separable(4000);
  const RouterOutcome outcome = judge_router(samples, fit_router(samples, 0));
  double best = 0;
  for (const RouterSample& sample : samples)
    best += std::min(sample.draft_loss, sample.target_loss);
  EXPECT_LT(outcome.loss, best / 4000 + 0.01);
}

TEST(FitRouter, ThePriceOfRejectionsKeepsTextWithTheDrafter) {
  const auto samples = separable(4000);
  double last = 1;
  for (const double price : {0.0, 1.0, 2.0, 4.0, 100.0}) {
    const RouterOutcome outcome = judge_router(samples, fit_router(samples, price));
    EXPECT_LE(outcome.deferral_rate, last + 1e-9) << price;
    last = outcome.deferral_rate;
  }
  EXPECT_LT(last, 0.02);
}

TEST(FitRouter, TheBalancedPriceMakesItChoose) {
  const auto samples = separable(4000);
  const double price = balanced_price(samples);
  RouterWeights alone;
  const auto cost_at = [&](double threshold) {
    alone.threshold = threshold;
    const RouterOutcome outcome = judge_router(samples, alone);
    return outcome.loss + price * outcome.rejection;
  };
  EXPECT_NEAR(cost_at(0), cost_at(1), 1e-12);
  const RouterOutcome outcome = judge_router(samples, fit_router(samples, price));
  EXPECT_LT(outcome.loss + price * outcome.rejection, 0.9 * cost_at(0));
  auto worse = samples;
  for (RouterSample& sample : worse) sample.target_loss = sample.draft_loss + 1;
  EXPECT_EQ(balanced_price(worse), 0);
  EXPECT_EQ(balanced_price({}), 0);
}

// At the minimum the weighted residuals are orthogonal to every feature, except for the ridge term.
TEST(FitRouter, StopsAtTheMinimum) {
  std::mt19937_64 random(2);
  std::normal_distribution<double> normal(0, 1);
  std::vector<RouterSample> samples;
  for (int i = 0; i < 2000; ++i) {
    RouterSample sample;
    for (double& feature : sample.features) feature = normal(random);
    sample.draft_loss = 2 + sample.features[1] + 2 * normal(random);
    sample.target_loss = 2;
    samples.push_back(sample);
  }
  const RouterWeights router = fit_router(samples, 0);
  RouterFeatures slope = {};
  double slope_of_bias = 0;
  double total = 0;
  for (const RouterSample& sample : samples) {
    double score = router.bias;
    for (std::size_t i = 0; i < slope.size(); ++i) score += router.weights[i] * sample.features[i];
    const double gain = sample.draft_loss - sample.target_loss;
    const double residual = std::abs(gain) * (1 / (1 + std::exp(-score)) - (gain > 0 ? 1.0 : 0.0));
    for (std::size_t i = 0; i < slope.size(); ++i) slope[i] += residual * sample.features[i];
    slope_of_bias += residual;
    total += std::abs(gain);
  }
  for (const double value : slope) EXPECT_LT(std::abs(value), 1e-5 * total);
  EXPECT_LT(std::abs(slope_of_bias), 1e-5 * total);
  EXPECT_GT(router.weights[1], 0.5);
}

TEST(FitRouter, EndsAreTheTwoModels) {
  const auto samples = separable(100);
  RouterWeights router;
  router.threshold = 1;
  EXPECT_EQ(judge_router(samples, router).deferral_rate, 0);
  router.threshold = 0;
  EXPECT_EQ(judge_router(samples, router).deferral_rate, 1);
}

class Counting final : public BatchSource {
 public:
  Batch batch(std::int64_t number) override {
    Batch batch{.n_sequences = 2, .length = 8, .tokens = {}, .weights = {}};
    for (int i = 0; i < 16; ++i) {
      batch.tokens.push_back(static_cast<TokenId>((number * 16 + i * 7) % 300));
      batch.weights.push_back(i % 8 == 0 ? 0.0F : 1.0F);
    }
    return batch;
  }
  std::int64_t n_tokens() const override { return 16; }
  std::uint64_t fingerprint() const override { return 0; }
};

TEST(FitRouter, SeesBothModelsAtEveryPlace) {
  const test::TemporaryDirectory directory;
  test::TinyShape shape;
  shape.dim = 32;
  shape.n_heads = 2;
  shape.n_kv_heads = 2;
  const test::TinyModel tiny = test::make_tiny_model(shape);
  test::write_hugging_face(tiny, directory.path() / "target");
  test::write_hugging_face(test::with_noise(tiny, 0.5F, 3), directory.path() / "drafter");
  Teacher target(directory.path() / "target", 1);
  Teacher drafter(directory.path() / "drafter", 1);
  Counting batches;
  const auto samples = collect_router_samples(target, drafter, batches, 0, 3);
  ASSERT_EQ(samples.size(), 3u * 2 * 7);
  const auto same = collect_router_samples(target, target, batches, 0, 1);
  for (const RouterSample& sample : same) {
    EXPECT_EQ(sample.draft_loss, sample.target_loss);
    EXPECT_NEAR(sample.total_variation, 0, 1e-12);
    EXPECT_EQ(sample.features[5], 1);  // agreement
  }
  double variation = 0;
  for (const RouterSample& sample : samples) variation += sample.total_variation;
  EXPECT_GT(variation, 1);
  EXPECT_THROW(fit_router({}, 0), Error);
}

}  // namespace
}  // namespace outrider::train
