// SPDX-License-Identifier: Apache-2.0
// Rows of given texts have the bits that generating the same tokens has.
#include "outrider/score.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "model/cache/cache_group.h"
#include "model/language_model.h"
#include "model/prefill.h"
#include "outrider/error.h"
#include "outrider/generate.h"
#include "tests/support/goldens/golden_models.h"
#include "tests/support/proofs/drafter_worlds.h"

namespace outrider {
namespace {

using Ids = std::vector<TokenId>;

std::vector<ScoreResult> score(const std::shared_ptr<const Model>& model,
                               std::vector<ScoreText> texts, const ScoreOptions& options = {},
                               int* n_passes = nullptr) {
  Scoring scoring(model, std::move(texts), options);
  int passes = 1;
  while (scoring.step()) ++passes;
  EXPECT_FALSE(scoring.step());
  if (n_passes != nullptr) *n_passes = passes;
  return std::move(scoring.results());
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

class Scores : public ::testing::Test {
 protected:
  Ids some_ids(int n_tokens, int step) const {
    Ids ids;
    for (int i = 0; i < n_tokens; ++i) ids.push_back((3 + i * step) % width());
    return ids;
  }
  int width() const { return model_->summary().vocabulary_size; }

  std::shared_ptr<const Model> model_ =
      Model::load(test::DrafterFiles::get().target(), {.threads = 1});
};

TEST_F(Scores, HaveTheBitsOfGenerating) {
  const Ids prompt = some_ids(9, 5);
  Generator generator(model_);
  const GenerateRequest request{
      .prompt = prompt, .options = {.max_tokens = 20, .ignore_eos = true, .keep_logits = true}};
  const GenerateResult generated = generator.generate({&request, 1}).front();
  Ids text = prompt;
  text.insert(text.end(), generated.ids.begin(), generated.ids.end());
  text.pop_back();  // no logits were requested after the last token
  const ScoreResult result =
      score(model_, {{.ids = text, .first_logits = prompt.size() - 1}}).front();
  EXPECT_TRUE(same_bits(result.logits, generated.logits));
  const ScoreResult whole = score(model_, {{.ids = text}}).front();
  ASSERT_EQ(whole.logits.size(), text.size() * static_cast<std::size_t>(width()));
  EXPECT_TRUE(same_bits(std::span(whole.logits).last(result.logits.size()), generated.logits));
}

// Beside other texts, and split at pass boundaries anywhere.
TEST_F(Scores, AreTheSameInAnyCompany) {
  const int longest = std::min(300, model_->summary().context_length);
  const ScoreOptions options{.layers = {model_->summary().n_layers, 0}};
  std::vector<ScoreText> texts;
  for (const int n_tokens : {1, 100, longest, 3, 60}) {
    texts.push_back({.ids = some_ids(n_tokens, n_tokens + 1)});
  }
  int n_passes = 0;
  const std::vector<ScoreResult> together = score(model_, texts, options, &n_passes);
  EXPECT_EQ(n_passes, (164 + longest + kPrefillRows - 1) / kPrefillRows);
  ASSERT_EQ(together.size(), texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const ScoreResult alone = score(model_, {texts[i]}, options).front();
    EXPECT_TRUE(same_bits(alone.logits, together[i].logits)) << i;
    EXPECT_TRUE(same_bits(alone.features, together[i].features)) << i;
  }
}

// Compares with passes of one token each.
TEST_F(Scores, FeaturesAreTheHiddenStates) {
  LanguageModel& model = model_->language_model();
  const Ids ids = some_ids(12, 7);
  const int last = model.config().n_layers;
  const std::vector<int> layers = {0, last, 1};
  const ScoreResult result =
      score(model_, {{.ids = ids}}, {.logits = false, .layers = layers}).front();
  EXPECT_TRUE(result.logits.empty());
  const auto sequence = model.open({.n_tokens = static_cast<int>(ids.size())});
  ForwardOutput output;
  std::vector<float> expected;
  for (const TokenId& id : ids) {
    prefill(model, *sequence, {&id, 1}, output, layers);
    expected.insert(expected.end(), output.features.begin(),
                    output.features.begin() + output.feature_width);
  }
  ASSERT_EQ(expected.size(), ids.size() * 3 * static_cast<std::size_t>(model.config().dim));
  EXPECT_TRUE(same_bits(result.features, expected));
}

TEST_F(Scores, TakeRowsFromWhereTheyAreAskedFor) {
  const Ids ids = some_ids(10, 3);
  const std::vector<ScoreResult> results = score(
      model_, {{.ids = ids}, {.ids = ids, .first_logits = 10}, {.ids = ids, .first_logits = 4}});
  EXPECT_TRUE(results[1].logits.empty());
  EXPECT_TRUE(
      same_bits(std::span(results[0].logits).last(results[2].logits.size()), results[2].logits));
  EXPECT_EQ(results[2].logits.size(), 6 * static_cast<std::size_t>(width()));
}

// Rows depend on the encoder's input and equal those of generating.
TEST(EncoderDecoderScores, HaveTheBitsOfGenerating) {
  const test::GoldenModel golden("t5_plain");
  const auto model = Model::load(test::golden_directory("t5_plain") / "model.gguf",
                                 {.weights = "f32", .kv = "f32", .threads = 1});
  Generator generator(model);
  const GenerateRequest request{
      .prompt = golden.encoder_ids,
      .options = {.max_tokens = 8, .ignore_eos = true, .keep_logits = true}};
  const GenerateResult generated = generator.generate({&request, 1}).front();
  Ids text = {model->summary().start_token};
  text.insert(text.end(), generated.ids.begin(), generated.ids.end() - 1);
  const ScoreResult result =
      score(model, {{.ids = text, .encoder_ids = golden.encoder_ids}}).front();
  EXPECT_TRUE(same_bits(result.logits, generated.logits));
  EXPECT_THROW(Scoring(model, {{.ids = text}}), Error);
}

TEST_F(Scores, RefuseWhatCannotBeRun) {
  const auto too_many = static_cast<std::size_t>(model_->summary().context_length) + 1;
  const std::vector<ScoreText> refused = {
      {.ids = {}},        {.ids = Ids(too_many, 1)},        {.ids = {-1}},
      {.ids = {width()}}, {.ids = {1}, .encoder_ids = {1}}, {.ids = {1}, .first_logits = 2}};
  for (const ScoreText& text : refused) {
    // One of them suffices.
    EXPECT_THROW(Scoring(model_, {{.ids = {1}}, text}), Error);
  }
  const int beyond = model_->summary().n_layers + 1;
  EXPECT_THROW(Scoring(model_, {{.ids = {1}}}, {.layers = {beyond}}), UsageError);
  EXPECT_THROW(Scoring(model_, {{.ids = {1}}}, {.layers = {-1}}), UsageError);
}

// A text without memory can continue later, from where it was.
TEST_F(Scores, GoOnWhereThereWasNoRoom) {
  const auto bytes = static_cast<std::uint64_t>(model_->summary().kv_bytes_per_token);
  const int longest = std::min(300, model_->summary().context_length);
  ASSERT_GT(longest, kPrefillRows);
  const std::uint64_t n_pages = static_cast<std::uint64_t>(longest) / kPageTokens + 1;
  const auto model = Model::load(test::DrafterFiles::get().target(),
                                 {.kv_memory_bytes = n_pages * kPageTokens * bytes, .threads = 1});
  const Ids ids = some_ids(longest, 11);
  Scoring scoring(model, {{.ids = ids}});
  ASSERT_TRUE(scoring.step());
  {
    LanguageModel& language_model = model->language_model();
    const auto other = language_model.open({.n_tokens = 1});
    ForwardOutput output;
    prefill(language_model, *other, Ids{1}, output);  // takes the last page
    EXPECT_THROW(scoring.step(), Error);
  }
  while (scoring.step()) {
  }
  EXPECT_TRUE(
      same_bits(scoring.results().front().logits, score(model_, {{.ids = ids}}).front().logits));
}

}  // namespace
}  // namespace outrider
