// SPDX-License-Identifier: Apache-2.0
// Compares likelihoods with Hugging Face transformers (tests/golden/make/make_story_likelihood.py)
// on real weights, and with one pass per token on a random model.
#include "eval/along_texts/text_likelihood.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/language_model.h"
#include "outrider/error.h"
#include "tests/support/models/tiny_model.h"
#include "tests/support/near.h"
#include "tests/support/temporary_directory.h"

namespace outrider::eval {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::near;

TEST(TextLikelihood, EqualsTransformersOnRealWeights) {
  const fs::path stories = fs::path(OUTRIDER_SHARED_DATA) / "models" / "stories260K";
  if (!fs::exists(stories / "config.json")) GTEST_SKIP() << "no " << stories;
  // The same weights with a context of 64 tokens, so that a text takes several windows.
  const test::TemporaryDirectory directory;
  for (const auto& entry : fs::directory_iterator(stories)) {
    if (entry.path().filename() == "config.json") continue;
    fs::create_symlink(entry.path(), directory.path() / entry.path().filename());
  }
  json config = json::parse(std::ifstream(stories / "config.json"));
  config["max_position_embeddings"] = 64;
  std::ofstream(directory.path() / "config.json") << config;

  const auto whole = Model::load(stories, {.threads = 1});
  const auto narrow = Model::load(directory.path(), {.threads = 1});
  const json goldens =
      json::parse(std::ifstream(OUTRIDER_SOURCE_DIR "/tests/golden/story_likelihood.json"));
  ASSERT_GE(goldens.size(), 2U);
  for (const json& golden : goldens) {
    const std::string text = golden["text"];
    const TextLikelihood likelihood = likelihood_of(*whole, text);
    EXPECT_EQ(likelihood.n_tokens, golden["n_tokens"].get<std::int64_t>());
    EXPECT_EQ(likelihood.n_bytes, static_cast<std::int64_t>(text.size()));
    // Logits of up to 20, computed in float through five layers: some ten roundings of 2^-24 each,
    // 20 * 10 * 6e-8 or 1.2e-5 per token.
    const double tolerance = 1.2e-5 * static_cast<double>(likelihood.n_tokens);
    EXPECT_TRUE(near(likelihood.nll, golden["nll"], tolerance));
    EXPECT_TRUE(near(likelihood_of(*narrow, text).nll, golden["nll_windows_of_64"], tolerance));
  }
}

class TinyText : public ::testing::Test {
 protected:
  TinyText() {
    test::TinyShape shape;
    shape.context_length = 64;
    test::write_hugging_face(test::make_tiny_model(shape), directory_.path() / "tiny");
    model_ = Model::load(directory_.path() / "tiny", {.threads = 1});
  }

  // One token per pass, from the beginning of the window that ends with `token`'s context.
  double by_hand(const std::vector<TokenId>& ids, std::size_t begin, std::size_t token) const {
    const auto sequence = model_->language_model().open({});
    ForwardOutput output;
    for (std::size_t at = begin; at < token; ++at) {
      const TokenBlock block{.sequence = sequence.get(), .tokens = {&ids[at], 1}, .parents = {}};
      model_->language_model().forward({&block, 1}, {}, output);
      sequence->keep(std::vector<int>{0});
    }
    double sum = 0;
    for (const float logit : output.logits_row(0)) sum += std::exp(double{logit});
    return std::log(sum) - double{output.logits_row(0)[static_cast<std::size_t>(ids[token])]};
  }

  test::TemporaryDirectory directory_;
  std::shared_ptr<const Model> model_;
};

// A start token takes the first place of every window, as in llama-perplexity.
TEST(TextLikelihood, WindowsBeginWithTheTokenForTheBeginning) {
  const auto model = Model::load(OUTRIDER_SOURCE_DIR "/models/drafter", {.threads = 1});
  const std::vector<TokenId> ids = model->tokenizer().encode(
      "The old gentleman looked at her for a moment, and then he said "
      "nothing, and she said nothing.",
      true);
  ASSERT_EQ(ids.front(), model->tokenizer().bos_token());
  ASSERT_GE(ids.size(), 16U);
  const WindowLikelihood sums = score_windows(*model, std::span(ids).first(16), 8);
  EXPECT_TRUE(sums.begins);
  EXPECT_EQ(sums.n_tokens, 6);
  const auto by_whole_passes = [&](TokenId first_of_second) {
    double nll = 0;
    for (const std::size_t begin : {0U, 8U}) {
      std::vector<TokenId> tokens(&ids[begin], &ids[begin] + 8);
      if (begin > 0) tokens.front() = first_of_second;
      score_tokens(*model, tokens, [&](std::size_t i, double score) { nll += i > 4 ? score : 0; });
    }
    return nll;
  };
  EXPECT_TRUE(near(sums.nll, by_whole_passes(ids.front()), 1e-10));
  EXPECT_FALSE(near(sums.nll, by_whole_passes(ids[8]), 1e-3));
}

TEST_F(TinyText, EachTokenIsScoredOnceWithHalfAContextBehindIt) {
  std::vector<TokenId> ids;
  for (int i = 0; i < 150; ++i) ids.push_back((i * 37 + i / 7) % 250);
  std::vector<double> scores = {0};
  EXPECT_TRUE(score_tokens(*model_, ids, [&](std::size_t i, double nll) {
    EXPECT_EQ(i, scores.size());
    scores.push_back(nll);
  }));
  ASSERT_EQ(scores.size(), ids.size());
  // Windows begin every 32 tokens; a token is scored in the first one that includes it.
  for (std::size_t token = 1; token < ids.size(); ++token) {
    const std::size_t begin = token < 64 ? 0 : (token - 64) / 32 * 32 + 32;
    EXPECT_TRUE(near(scores[token], by_hand(ids, begin, token), 1e-12)) << token;
  }
}

// Windows of 25: rows 12 to 23 count, which predict tokens 13 to 24 of each.
TEST_F(TinyText, ScoresTheSecondHalfOfEachWindow) {
  std::vector<TokenId> ids;
  for (int i = 0; i < 60; ++i) ids.push_back((i * 37 + i / 7) % 250);
  const TokenId first_token = model_->tokenizer().encode("a", true).front();
  const bool begins = first_token != model_->tokenizer().encode("a", false).front();
  std::vector<std::size_t> done;
  const WindowLikelihood sums =
      score_windows(*model_, ids, 25, [&](std::size_t n) { done.push_back(n); });
  EXPECT_EQ(done.back(), 2U);
  EXPECT_EQ(sums.n_windows, 2U);
  EXPECT_EQ(sums.n_tokens, 24);
  EXPECT_EQ(sums.begins, begins);
  std::vector<double> scores;
  for (const std::size_t begin : {0U, 25U}) {
    std::vector<TokenId> with_first = ids;
    if (begins) with_first[begin] = first_token;
    for (std::size_t token = begin + 13; token < begin + 25; ++token) {
      scores.push_back(by_hand(with_first, begin, token));
    }
  }
  double sum = 0;
  for (const double score : scores) sum += score;
  EXPECT_TRUE(near(sums.nll, sum, 1e-10));
  double variance = 0;
  for (const double score : scores) variance += (score - sum / 24) * (score - sum / 24) / 23;
  EXPECT_TRUE(near(sums.standard_error(), std::sqrt(variance / 24), 1e-7));
  // An error by one row would give another sum.
  EXPECT_FALSE(near(sums.nll, sum - scores.front(), 1e-3));

  EXPECT_THROW(score_windows(*model_, ids, 61), Error);
  EXPECT_THROW(score_windows(*model_, ids, 65), UsageError);
  EXPECT_THROW(score_windows(*model_, ids, 3), UsageError);
}

TEST_F(TinyText, EndsWhenCancelledAndRefusesNothingToScore) {
  std::vector<TokenId> ids(100, 5);
  int n_scored = 0;
  EXPECT_FALSE(score_tokens(
      *model_, ids, [&](std::size_t, double) { ++n_scored; }, [] { return true; }));
  EXPECT_EQ(n_scored, 0);
  EXPECT_THROW(likelihood_of(*model_, ""), Error);
}

}  // namespace
}  // namespace outrider::eval
