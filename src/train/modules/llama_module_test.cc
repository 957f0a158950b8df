// SPDX-License-Identifier: Apache-2.0
// Compares the module in training with the model that the engine runs, and its gradients with
// finite differences.
#include "train/modules/llama_module.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <vector>

#include "model/load_model.h"
#include "outrider/error.h"
#include "tests/support/gradient_differences.h"
#include "tests/support/models/run_model.h"
#include "tests/support/near.h"
#include "tests/support/temporary_directory.h"
#include "train/losses/losses.h"
#include "train/output/model_directory.h"

namespace outrider::train {
namespace {

using test::expect_gradient_is_difference;
using test::near;
using test::scattered_entries;
using torch::Tensor;

ModelConfig tiny_config() {
  ModelConfig config;
  config.architecture = "llama";
  config.vocabulary_size = 97;
  config.context_length = 64;
  config.n_layers = 3;
  config.dim = 48;
  config.n_heads = 6;
  config.n_kv_heads = 2;
  config.head_dim = 8;
  config.hidden_dim = 72;
  config.norm_epsilon = 1e-5F;
  config.rope.theta = 5000;
  config.tied_head = true;
  return config;
}

std::vector<ModelConfig> configs() {
  ModelConfig tied = tiny_config();
  ModelConfig untied = tiny_config();
  untied.tied_head = false;
  untied.n_kv_heads = 6;
  ModelConfig biased = tiny_config();
  biased.attention_bias = true;
  biased.mlp_bias = true;
  return {tied, untied, biased};
}

const std::vector<TokenId>& some_tokens() {
  static const std::vector<TokenId> kTokens = {1,  7, 96, 33, 33, 8, 12, 2, 59, 21,
                                               44, 0, 3,  3,  3,  9, 90, 8, 1,  50};
  return kTokens;
}

Tensor as_tensor(const std::vector<TokenId>& tokens) {
  return torch::tensor(tokens, torch::kInt64).unsqueeze(0);
}

// Random weights large enough for every part of the model to matter.
void spread(torch::nn::Module& module, double size) {
  const torch::NoGradGuard no_grad;
  for (auto& parameter : module.parameters()) {
    parameter.add_(torch::randn_like(parameter) * size);
  }
}

TEST(LlamaModule, TheEngineSeesTheSameModel) {
  for (const ModelConfig& config : configs()) {
    LlamaModule model = make_llama(config, Products::full, {}, 3);
    spread(*model, 0.1);
    const test::TemporaryDirectory directory;
    write_parameters(directory.path(), "model.safetensors", *model, ElementType::f32);
    write_json(directory.path(), "config.json", llama_config_json(config, ElementType::f32));

    LoadOptions options;
    options.n_threads = 1;
    const auto engine = load_model(directory.path(), options);
    const auto sequence = engine->open({});
    const test::Rows rows = test::run_block(*engine, *sequence, some_tokens());
    const torch::NoGradGuard no_grad;
    const Tensor logits = model->logits(model->features(as_tensor(some_tokens())))[0];
    double largest = 0;
    for (std::size_t row = 0; row < rows.size(); ++row) {
      for (std::size_t id = 0; id < rows[row].size(); ++id) {
        const auto expected =
            logits[static_cast<std::int64_t>(row)][static_cast<std::int64_t>(id)].item<float>();
        largest = std::max(largest, std::abs(double{rows[row][id]} - expected));
      }
    }
    EXPECT_LT(largest, 1e-4);
    EXPECT_GT(logits.std().item<double>(), 0.5);  // otherwise the comparison would mean nothing
  }
}

// A model that is read back equals the one that was written.
TEST(LlamaModule, StartsFromWhatWasExported) {
  const ModelConfig config = tiny_config();
  LlamaModule model = make_llama(config, Products::full, {}, 3);
  const test::TemporaryDirectory directory;
  write_parameters(directory.path(), "model.safetensors", *model, ElementType::f32);
  LlamaModule again = make_llama(config, Products::full, directory.path(), 4);
  const auto before = model->named_parameters();
  for (const auto& parameter : again->named_parameters()) {
    EXPECT_TRUE(torch::equal(parameter.value(), before[parameter.key()])) << parameter.key();
  }
  ModelConfig wider = config;
  wider.hidden_dim = 80;
  EXPECT_THROW(make_llama(wider, Products::full, directory.path(), 4), Error);
}

// A directory may declare its output matrix tied and still hold a different one: training continues
// from that.
TEST(LlamaModule, StartsFromAnOutputMatrixBesideATiedEmbedding) {
  ModelConfig untied = tiny_config();
  untied.tied_head = false;
  LlamaModule model = make_llama(untied, Products::full, {}, 3);
  const test::TemporaryDirectory directory;
  write_parameters(directory.path(), "model.safetensors", *model, ElementType::f32);
  LlamaModule again = make_llama(tiny_config(), Products::full, directory.path(), 4);
  const Tensor* head = again->named_parameters().find("lm_head.weight");
  ASSERT_NE(head, nullptr);
  EXPECT_TRUE(torch::equal(*head, *model->named_parameters().find("lm_head.weight")));
  EXPECT_FALSE(again->config().tied_head);
}

TEST(LlamaModule, GoesOnFromPastKeys) {
  LlamaModule model = make_llama(tiny_config(), Products::full, {}, 5);
  spread(*model, 0.1);
  model->to(torch::kFloat64);
  const torch::NoGradGuard no_grad;
  const Tensor tokens = as_tensor(some_tokens());
  const Tensor whole = model->features(tokens);
  std::vector<PastKeys> past;
  const Tensor first = model->features(tokens.narrow(1, 0, 7), &past);
  const Tensor second = model->features(tokens.narrow(1, 7, 5), &past);
  const Tensor third = model->features(tokens.narrow(1, 12, 1), &past);
  const Tensor pieces = torch::cat({first, second, third}, 1);
  // The same sums in another order, in doubles.
  EXPECT_LT((whole.narrow(1, 0, 13) - pieces).abs().max().item<double>(), 1e-11);
}

TEST(LlamaModule, LeavesAShareOutWhileItLearns) {
  LlamaModule model = make_llama(tiny_config(), Products::full, {}, 5);
  spread(*model, 0.1);
  const torch::NoGradGuard no_grad;
  const Tensor tokens = as_tensor(some_tokens());
  const Tensor whole = model->features(tokens);
  model->set_dropout(0.3);
  torch::manual_seed(1);
  const Tensor first = model->features(tokens);
  const Tensor second = model->features(tokens);
  torch::manual_seed(1);
  EXPECT_TRUE(torch::equal(model->features(tokens), first));
  EXPECT_FALSE(torch::equal(first, second));
  EXPECT_FALSE(torch::equal(first, whole));
  model->eval();
  EXPECT_TRUE(torch::equal(model->features(tokens), whole));
}

// Both errors of the finite differences are below 1e-8 here.
TEST(LlamaModule, GradientsAreDifferences) {
  for (const ModelConfig& config : configs()) {
    LlamaModule model = make_llama(config, Products::full, {}, 7);
    spread(*model, 0.05);
    model->to(torch::kFloat64);
    const Tensor tokens = as_tensor(some_tokens());
    const Tensor weights =
        torch::rand({static_cast<std::int64_t>(some_tokens().size()) - 1}, torch::kFloat64);
    const auto loss = [&] {
      const Tensor logits = model->logits(model->features(tokens.narrow(1, 0, tokens.size(1) - 1)));
      return weighted_mean(
          cross_entropy_rows(logits[0], tokens[0].narrow(0, 1, tokens.size(1) - 1)), weights);
    };
    model->zero_grad();
    loss().backward();
    for (const auto& parameter : model->named_parameters()) {
      expect_gradient_is_difference(parameter.value(), loss,
                                    scattered_entries(parameter.value(), 3), 1e-8, parameter.key());
    }
  }
}

TEST(LlamaModule, ItsLossIsTheCrossEntropy) {
  const Tensor logits = torch::tensor({{1.0, 2.0, 0.5}, {0.0, -1.0, 3.0}}, torch::kFloat64);
  const Tensor tokens = torch::tensor({1, 0}, torch::kInt64);
  const Tensor rows = cross_entropy_rows(logits, tokens);
  const double first = std::log(std::exp(1.0) + std::exp(2.0) + std::exp(0.5)) - 2;
  const double second = std::log(1 + std::exp(-1.0) + std::exp(3.0));
  EXPECT_TRUE(near(rows[0].item<double>(), first, 1e-14));
  EXPECT_TRUE(near(rows[1].item<double>(), second, 1e-14));
  const Tensor weights = torch::tensor({3.0, 1.0}, torch::kFloat64);
  EXPECT_TRUE(near(weighted_mean(rows, weights).item<double>(), (3 * first + second) / 4, 1e-14));
  EXPECT_EQ(weighted_mean(rows, torch::zeros({2}, torch::kFloat64)).item<double>(), 0);
}

}  // namespace
}  // namespace outrider::train
