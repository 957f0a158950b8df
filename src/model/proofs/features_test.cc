// SPDX-License-Identifier: Apache-2.0
// Hidden states that a pass returns: their values, and the promise that logits also keep: their
// bits do not depend on how the row was computed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "model/decoder_model.h"
#include "model/load_model.h"
#include "outrider/error.h"
#include "tests/support/models/run_model.h"
#include "tests/support/models/tiny_model.h"
#include "tests/support/near.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

using test::near;
using test::product_tolerance;

test::TinyShape three_layers() {
  test::TinyShape shape;
  shape.seed = 5;
  shape.n_layers = 3;
  return shape;
}

std::unique_ptr<LanguageModel> load_tiny(const test::TinyModel& model, int n_threads) {
  const test::TemporaryDirectory directory;
  test::write_hugging_face(model, directory.path());
  LoadOptions options;
  options.n_threads = n_threads;
  options.weights = kernels::WeightKind::f32;
  auto loaded = load_model(directory.path(), options);
  dynamic_cast<DecoderModel&>(*loaded).set_min_share_ns(0);
  return loaded;
}

const std::vector<TokenId>& some_tokens() {
  static const std::vector<TokenId> kTokens = {1, 7, 290, 33, 33, 8, 120, 2, 59, 211, 4};
  return kTokens;
}

ForwardOutput run(LanguageModel& model, Sequence& sequence, std::span<const TokenId> tokens,
                  std::span<const int> layers, RowSet rows = {}) {
  const TokenBlock block{&sequence, tokens, {}};
  ForwardOutput output;
  model.forward({&block, 1}, {.logits = rows, .feature_layers = layers}, output);
  return output;
}

// x / rms(x) * weight
std::vector<double> normalised(std::span<const float> x, const std::vector<float>& weight,
                               double epsilon) {
  double squares = 0;
  for (const float value : x) squares += double{value} * value;
  const double scale = 1 / std::sqrt(squares / static_cast<double>(x.size()) + epsilon);
  std::vector<double> result;
  for (std::size_t i = 0; i < x.size(); ++i) result.push_back(x[i] * scale * weight[i]);
  return result;
}

TEST(Features, FirstIsTheEmbedding) {
  test::TinyModel tiny = test::make_tiny_model(three_layers());
  const auto model = load_tiny(tiny, 1);
  const auto sequence = model->open({});
  const int layers[] = {0};
  const ForwardOutput output = run(*model, *sequence, some_tokens(), layers);
  ASSERT_EQ(output.feature_width, 64);
  const std::vector<float>& embedding = tiny.at("model.embed_tokens.weight").values;
  for (std::size_t row = 0; row < some_tokens().size(); ++row) {
    EXPECT_EQ(std::memcmp(output.feature_row(static_cast<int>(row)).data(),
                          embedding.data() + static_cast<std::size_t>(some_tokens()[row]) * 64,
                          64 * sizeof(float)),
              0)
        << "row " << row;
  }
}

// A model cut off after l layers ends with the norm of the stream that the whole model has there.
TEST(Features, InnerOnesAreTheStreamAfterThatManyLayers) {
  const test::TinyModel whole = test::make_tiny_model(three_layers());
  const auto model = load_tiny(whole, 1);
  const auto sequence = model->open({});
  const int layers[] = {2, 1, 3};
  const ForwardOutput output = run(*model, *sequence, some_tokens(), layers);
  ASSERT_EQ(output.feature_width, 3 * 64);
  for (const int n_layers : {1, 2, 3}) {
    test::TinyModel cut = whole;
    cut.shape.n_layers = n_layers;
    const auto cut_model = load_tiny(cut, 1);
    const auto cut_sequence = cut_model->open({});
    const int last[] = {n_layers};
    const ForwardOutput expected = run(*cut_model, *cut_sequence, some_tokens(), last);
    const std::size_t place = n_layers == 2 ? 0 : n_layers == 1 ? 1 : 2;
    for (int row = 0; row < static_cast<int>(some_tokens().size()); ++row) {
      const std::span<const float> feature = output.feature_row(row).subspan(place * 64, 64);
      if (n_layers == 3) {
        EXPECT_EQ(std::memcmp(feature.data(), expected.feature_row(row).data(), 64 * sizeof(float)),
                  0);
        continue;
      }
      const std::vector<double> norm =
          normalised(feature, cut.at("model.norm.weight").values, model->config().norm_epsilon);
      for (std::size_t i = 0; i < norm.size(); ++i) {
        // 64 squares summed, a square root, a quotient and two products.
        EXPECT_TRUE(
            near(expected.feature_row(row)[i], norm[i], product_tolerance(70, std::abs(norm[i]))));
      }
    }
  }
}

TEST(Features, LastIsWhatTheHeadReads) {
  test::TinyModel tiny = test::make_tiny_model(three_layers());
  const auto model = load_tiny(tiny, 1);
  const auto sequence = model->open({});
  const int layers[] = {3};
  const ForwardOutput output = run(*model, *sequence, some_tokens(), layers);
  const std::vector<float>& head = tiny.at("lm_head.weight").values;
  for (int row = 0; row < output.logits.n_rows(); ++row) {
    const std::span<const float> feature = output.feature_row(row);
    for (std::size_t token = 0; token < 300; ++token) {
      double logit = 0;
      double magnitude = 0;
      for (std::size_t i = 0; i < 64; ++i) {
        const double product = double{head[token * 64 + i]} * feature[i];
        logit += product;
        magnitude += std::abs(product);
      }
      ASSERT_TRUE(near(output.logits_row(row)[token], logit, product_tolerance(64, magnitude)));
    }
  }
}

// Heads borrow the output matrix: equal features give the same bits as in a pass.
TEST(Features, ProjectedTheyAreTheLogits) {
  for (const kernels::WeightKind kind :
       {kernels::WeightKind::f32, kernels::WeightKind::bf16, kernels::WeightKind::int8}) {
    const test::TemporaryDirectory directory;
    test::write_hugging_face(test::make_tiny_model(three_layers()), directory.path());
    LoadOptions options;
    options.weights = kind;
    options.n_threads = 2;
    const auto model = load_model(directory.path(), options);
    const auto sequence = model->open({});
    const int layers[] = {3};
    const ForwardOutput output = run(*model, *sequence, some_tokens(), layers);
    ForwardOutput projected;
    model->project(std::span(output.features).first(some_tokens().size() * 64), projected);
    ASSERT_EQ(projected.logits.n_rows(), output.logits.n_rows());
    EXPECT_EQ(std::memcmp(projected.logits.values().data(), output.logits.values().data(),
                          some_tokens().size() * 300 * sizeof(float)),
              0);
    EXPECT_THROW(model->project(std::span(output.features).first(63), projected), Error);
  }
}

TEST(Features, EmbeddingsAreTheInputMatrix) {
  const auto model = load_tiny(test::make_tiny_model(three_layers()), 1);
  const auto sequence = model->open({});
  const int layers[] = {0};
  const ForwardOutput output = run(*model, *sequence, some_tokens(), layers);
  std::vector<float> embedded(some_tokens().size() * 64);
  model->embed(some_tokens(), embedded);
  EXPECT_EQ(std::memcmp(embedded.data(), output.features.data(), embedded.size() * sizeof(float)),
            0);
  EXPECT_THROW(model->embed(some_tokens(), std::span(embedded).first(64)), Error);
  const std::vector<TokenId> outside = {300};
  EXPECT_THROW(model->embed(outside, std::span(embedded).first(64)), Error);
}

TEST(Features, BitsDoNotDependOnThePass) {
  const test::TinyModel tiny = test::make_tiny_model(three_layers());
  const int layers[] = {1, 3};
  const auto model = load_tiny(tiny, 1);
  const auto whole = model->open({});
  // Every row returns its features, even if no logits are requested.
  const ForwardOutput expected =
      run(*model, *whole, some_tokens(), layers, {.kind = RowSet::Kind::none});
  EXPECT_EQ(expected.logits.n_rows(), 0);
  const auto two_threads = load_tiny(tiny, 2);
  const auto other = two_threads->open({});
  const ForwardOutput on_two = run(*two_threads, *other, some_tokens(), layers);
  const auto sequence = model->open({});
  for (std::size_t row = 0; row < some_tokens().size(); ++row) {
    const ForwardOutput alone = run(*model, *sequence, {&some_tokens()[row], 1}, layers);
    test::keep_first(*sequence, 1);
    const std::span<const float> feature = expected.feature_row(static_cast<int>(row));
    EXPECT_EQ(std::memcmp(feature.data(), alone.feature_row(0).data(), feature.size_bytes()), 0);
    EXPECT_EQ(std::memcmp(feature.data(), on_two.feature_row(static_cast<int>(row)).data(),
                          feature.size_bytes()),
              0);
  }
}

TEST(Features, NobodyAskedNothingLeft) {
  const auto model = load_tiny(test::make_tiny_model(three_layers()), 1);
  const auto sequence = model->open({});
  const ForwardOutput output = run(*model, *sequence, some_tokens(), {});
  EXPECT_EQ(output.feature_width, 0);
  EXPECT_TRUE(output.features.empty());
}

TEST(Features, RefusesLayersBeyondTheModel) {
  const auto model = load_tiny(test::make_tiny_model(three_layers()), 1);
  const auto sequence = model->open({});
  for (const int layer : {-1, 4}) {
    const int layers[] = {layer};
    EXPECT_THROW(run(*model, *sequence, some_tokens(), layers), Error);
    EXPECT_EQ(sequence->n_pending(), 0);
  }
}

}  // namespace
}  // namespace outrider
