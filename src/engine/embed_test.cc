// SPDX-License-Identifier: Apache-2.0
#include "outrider/embed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "model/language_model.h"
#include "model/prefill.h"
#include "outrider/error.h"
#include "tests/support/proofs/drafter_worlds.h"

namespace outrider {
namespace {

std::vector<float> embed(const std::shared_ptr<const Model>& model, const std::vector<TokenId>& ids,
                         int* n_steps = nullptr) {
  Embedding embedding(model, ids);
  int steps = 1;
  while (embedding.step()) ++steps;
  if (n_steps != nullptr) *n_steps = steps;
  return embedding.vector();
}

class Embeddings : public ::testing::Test {
 protected:
  std::shared_ptr<const Model> model_ =
      Model::load(test::DrafterFiles::get().target(), {.threads = 1});
};

// Compares with passes of one token each.
TEST_F(Embeddings, AreTheMeanOfTheLastHiddenStates) {
  LanguageModel& model = model_->language_model();
  const int n_tokens = std::min(300, model.config().context_length);
  std::vector<TokenId> ids;
  for (int i = 0; i < n_tokens; ++i) ids.push_back(i * 7 % model.config().vocabulary_size);
  const int layer = model.config().n_layers;
  const auto sequence = model.open({.n_tokens = n_tokens});
  ForwardOutput output;
  std::vector<double> sums;
  for (const TokenId& id : ids) {
    prefill(model, *sequence, {&id, 1}, output, {&layer, 1});
    sums.resize(output.features.size(), 0);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += output.features[i];
  }
  double length = 0;
  for (const double sum : sums) length += sum * sum;
  int n_steps = 0;
  const std::vector<float> vector = embed(model_, ids, &n_steps);
  EXPECT_EQ(n_steps, (n_tokens + 255) / 256);
  ASSERT_EQ(vector.size(), sums.size());
  double own_length = 0;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    EXPECT_NEAR(vector[i], sums[i] / std::sqrt(length), 1e-6);
    own_length += double{vector[i]} * vector[i];
  }
  EXPECT_NEAR(own_length, 1, 1e-5);
}

TEST_F(Embeddings, RefuseTextsThatCannotBeRun) {
  const auto too_many = static_cast<std::size_t>(model_->summary().context_length) + 1;
  EXPECT_THROW(Embedding(model_, {}), Error);
  EXPECT_THROW(Embedding(model_, std::vector<TokenId>(too_many, 1)), Error);
  EXPECT_THROW(Embedding(model_, {-1}), Error);
  EXPECT_THROW(Embedding(model_, {model_->language_model().config().vocabulary_size}), Error);
}

}  // namespace
}  // namespace outrider
