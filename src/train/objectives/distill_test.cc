// SPDX-License-Identifier: Apache-2.0
// Divergences against their formulas and finite differences, and distillation end to end: the
// drafter's agreement with its target grows.
#include "train/objectives/distill.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <vector>

#include "model/load_model.h"
#include "outrider/error.h"
#include "tests/support/gradient_differences.h"
#include "tests/support/models/tiny_model.h"
#include "tests/support/near.h"
#include "tests/support/temporary_directory.h"
#include "train/losses/losses.h"
#include "train/objective.h"
#include "train/training_run.h"

namespace outrider::train {
namespace {

using test::all_entries;
using test::expect_gradient_is_difference;
using test::near;
using torch::Tensor;

const std::vector<std::pair<Divergence, const char*>>& divergences() {
  static const std::vector<std::pair<Divergence, const char*>> kAll = {
      {Divergence::forward_kl, "forward KL"},
      {Divergence::reverse_kl, "reverse KL"},
      {Divergence::jensen_shannon, "Jensen-Shannon"},
      {Divergence::total_variation, "total variation"}};
  return kAll;
}

std::vector<double> softmax(const std::vector<double>& logits) {
  double sum = 0;
  std::vector<double> probs;
  for (const double logit : logits) sum += std::exp(logit);
  for (const double logit : logits) probs.push_back(std::exp(logit) / sum);
  return probs;
}

double by_hand(Divergence divergence, const std::vector<double>& t, const std::vector<double>& d) {
  double sum = 0;
  for (std::size_t i = 0; i < t.size(); ++i) {
    const double mean = (t[i] + d[i]) / 2;
    switch (divergence) {
      case Divergence::forward_kl:
        sum += t[i] > 0 ? t[i] * std::log(t[i] / d[i]) : 0;
        break;
      case Divergence::reverse_kl:
        sum += d[i] > 0 ? d[i] * std::log(d[i] / t[i]) : 0;
        break;
      case Divergence::jensen_shannon:
        sum += (t[i] > 0 ? t[i] * std::log(t[i] / mean) : 0) / 2;
        sum += (d[i] > 0 ? d[i] * std::log(d[i] / mean) : 0) / 2;
        break;
      case Divergence::total_variation:
        sum += std::abs(t[i] - d[i]) / 2;
        break;
    }
  }
  return sum;
}

TEST(Divergence, IsItsFormula) {
  const std::vector<double> target = {0.3, -1.2, 2.5, 0.0, -4.0};
  const std::vector<double> draft = {1.3, 0.2, 1.5, -0.7, -3.0};
  const Tensor target_logits = torch::tensor(target, torch::kFloat64).unsqueeze(0);
  const Tensor draft_logits = torch::tensor(draft, torch::kFloat64).unsqueeze(0);
  for (const auto& [divergence, name] : divergences()) {
    const double expected = by_hand(divergence, softmax(target), softmax(draft));
    EXPECT_TRUE(near(divergence_rows(divergence, draft_logits, target_logits)[0].item<double>(),
                     expected, 1e-14))
        << name;
    EXPECT_TRUE(
        near(divergence_rows(divergence, target_logits, target_logits)[0].item<double>(), 0, 1e-15))
        << name;
    const Judged judged = judge_rows(divergence, draft_logits, target_logits);
    EXPECT_TRUE(near(judged.divergence[0].item<double>(), expected, 1e-14)) << name;
    EXPECT_TRUE(near(judged.overlap[0].item<double>(),
                     1 - by_hand(Divergence::total_variation, softmax(target), softmax(draft)),
                     1e-14))
        << name;
  }
  // The acceptance rate is the overlap of the two distributions.
  EXPECT_TRUE(near(compare_distributions(draft_logits, target_logits).overlap[0].item<double>(),
                   1 - by_hand(Divergence::total_variation, softmax(target), softmax(draft)),
                   1e-14));
}

TEST(Divergence, ATargetMayExcludeTokens) {
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor target_logits = torch::tensor({{0.5, -inf, 1.0}}, torch::kFloat64);
  for (const auto& [divergence, name] : divergences()) {
    Tensor draft_logits = torch::tensor({{0.1, 0.2, 0.3}}, torch::kFloat64).requires_grad_();
    const Tensor loss = divergence_rows(divergence, draft_logits, target_logits).sum();
    if (divergence == Divergence::reverse_kl) {
      EXPECT_EQ(loss.item<double>(), inf);
      continue;
    }
    EXPECT_TRUE(std::isfinite(loss.item<double>())) << name;
    loss.backward();
    EXPECT_TRUE(torch::isfinite(draft_logits.grad()).all().item<bool>()) << name;
  }
  for (const torch::ScalarType type : {torch::kFloat32, torch::kFloat64}) {
    Tensor draft_logits = torch::tensor({{0.1, 0.2, 0.3}}, type).requires_grad_();
    const DistributionRows rows = compare_distributions(draft_logits, target_logits.to(type));
    const Tensor kl = rows.cross_entropy - rows.entropy;
    const Tensor expected =
        divergence_rows(Divergence::forward_kl, draft_logits.to(torch::kFloat64), target_logits);
    EXPECT_NEAR(kl[0].item<double>(), expected[0].item<double>(), 1e-6);
    kl.sum().backward();
    EXPECT_TRUE(torch::isfinite(draft_logits.grad()).all().item<bool>());
    EXPECT_FALSE(rows.overlap.requires_grad());
    // And a drafter that excludes tokens of the target has an infinite divergence.
    const DistributionRows apart =
        compare_distributions(target_logits.to(type), torch::tensor({{0.1, 0.2, 0.3}}, type));
    EXPECT_EQ(apart.cross_entropy[0].item<double>(), inf);
  }
}

// A mask would hide it: the loss would be finite and its gradient not.
TEST(Divergence, AnInfiniteRowOfWeightZeroMakesTheMeanNaN) {
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor target_logits = torch::tensor({{0.5, 1.0}, {0.5, -inf}}, torch::kFloat64);
  Tensor draft_logits = torch::tensor({{0.1, 0.2}, {0.1, 0.2}}, torch::kFloat64).requires_grad_();
  const Tensor weights = torch::tensor({1.0, 0.0}, torch::kFloat64);
  const Tensor rows = divergence_rows(Divergence::reverse_kl, draft_logits, target_logits);
  EXPECT_EQ(rows[1].item<double>(), inf);
  EXPECT_TRUE(std::isnan(weighted_mean(rows, weights).item<double>()));
  const Tensor masked = torch::where(weights > 0, rows, torch::zeros_like(rows));
  const Tensor loss = weighted_mean(masked, weights);
  EXPECT_TRUE(std::isfinite(loss.item<double>()));
  loss.backward();
  EXPECT_TRUE(draft_logits.grad()[1].isnan().all().item<bool>());
}

TEST(Divergence, GradientsAreDifferences) {
  torch::manual_seed(1);
  const Tensor target_logits = torch::randn({4, 7}, torch::kFloat64) * 2;
  const Tensor weights = torch::rand({4}, torch::kFloat64);
  for (const auto& [divergence, name] : divergences()) {
    Tensor draft_logits = (torch::randn({4, 7}, torch::kFloat64) * 2).requires_grad_();
    const auto loss = [&, which = divergence] {
      return weighted_mean(divergence_rows(which, draft_logits, target_logits), weights);
    };
    loss().backward();
    expect_gradient_is_difference(draft_logits, loss, all_entries(draft_logits), 1e-8, name);
  }
}

// Random tokens, since only the target's distribution is learnt.
std::shared_ptr<BatchSource> batches(int vocabulary) {
  std::vector<TokenId> stream;
  for (std::uint64_t i = 0; i < 4000; ++i) {
    stream.push_back(static_cast<TokenId>(mix(3, i) % static_cast<std::uint64_t>(vocabulary)));
  }
  return std::make_shared<WindowSource>(stream,
                                        BatchShape{.n_sequences = 8, .length = 24, .seed = 1});
}

struct Distillation {
  Distillation() {
    test::TinyShape shape;
    shape.vocabulary_size = 300;
    shape.n_layers = 1;
    shape.dim = 32;
    shape.n_heads = 2;
    shape.n_kv_heads = 2;
    test::write_hugging_face(test::make_tiny_model(shape), directory.path() / "target");
    options.target = std::make_shared<Teacher>(directory.path() / "target", 1);
    options.config = options.target->config();
    options.products = Products::full;
    options.seed = 4;
    options.batches = batches(300);
    options.held_out = batches(300);
    options.n_prompt = 4;
    options.export_type = ElementType::f32;
  }
  RunOptions run_options(const char* name, int n_steps) const {
    RunOptions run;
    run.directory = directory.path() / name;
    run.schedule = {.peak = 2e-2, .final_share = 0.1, .n_warmup = 5, .n_steps = n_steps};
    run.optimizer.weight_decay = 0;
    return run;
  }
  test::TemporaryDirectory directory;
  DistillOptions options;
};

TEST(Distill, EveryDivergenceRaisesTheOverlap) {
  Distillation distillation;
  for (const auto& [divergence, name] : divergences()) {
    distillation.options.divergence = divergence;
    const auto objective = make_distill(distillation.options);
    const auto overlap = [&] {
      std::map<std::string, double> metrics;
      for (const auto& [metric, value] : objective->evaluate()) metrics[metric] = value;
      return metrics.at("overlap");
    };
    const double before = overlap();
    run_training(*objective, distillation.run_options(name, 150), {});
    const double after = overlap();
    // A fresh drafter is uniform. How far it gets in such a short run varies, but it must improve.
    EXPECT_GT(after, before + 0.1) << name;
    EXPECT_LT(after, 1) << name;
  }
}

TEST(Distill, OnPolicyResumesBitForBitToo) {
  Distillation distillation;
  distillation.options.on_policy = 0.5;
  RunOptions whole = distillation.run_options("whole", 8);
  run_training(*make_distill(distillation.options), whole, {});
  RunOptions parts = distillation.run_options("parts", 8);
  int n_asked = 0;
  run_training(*make_distill(distillation.options), parts,
               {.on_step = {}, .should_stop = [&] { return n_asked++ == 3; }});
  parts.resume = true;
  run_training(*make_distill(distillation.options), parts, {});
  const auto source = [&](const char* name) {
    LoadOptions load;
    load.n_threads = 1;
    return load_model(distillation.directory.path() / name, load);
  };
  std::vector<TokenId> tokens = {1, 5, 9};
  ForwardOutput outputs[2];
  for (const int i : {0, 1}) {
    const auto model = source(i == 0 ? "whole" : "parts");
    const auto sequence = model->open({});
    const TokenBlock block{sequence.get(), tokens, {}};
    model->forward({&block, 1}, {}, outputs[i]);
  }
  EXPECT_TRUE(std::ranges::equal(outputs[0].logits.values(), outputs[1].logits.values()));
}

TEST(Distill, RefusesAnotherVocabulary) {
  Distillation distillation;
  distillation.options.config.vocabulary_size = 299;
  EXPECT_THROW(make_distill(distillation.options), Error);
}

}  // namespace
}  // namespace outrider::train
