// Likelihoods against Hugging Face transformers (tests/golden/make_story_likelihood.py) on real
// weights, and against one pass a token on a random model.
#include "eval/text_likelihood.h"

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
#include "tests/support/near.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/tiny_model.h"

namespace outrider::eval {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test_support::near;

TEST(TextLikelihood, EqualsTransformersOnRealWeights) {
  const fs::path stories = fs::path(OUTRIDER_SHARED_DATA) / "models" / "stories260K";
  if (!fs::exists(stories / "config.json")) GTEST_SKIP() << "no " << stories;
  // The same weights with a context of 64 tokens, so that a text takes several windows.
  const testing::TemporaryDirectory directory;
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
    // Logits of up to 20, computed in float through five layers: some ten roundings of 2^-24 each
    // on their way, 20 * 10 * 6e-8 or 1.2e-5 a token.
    const double tolerance = 1.2e-5 * static_cast<double>(likelihood.n_tokens);
    EXPECT_TRUE(near(likelihood.nll, golden["nll"], tolerance));
    EXPECT_TRUE(near(likelihood_of(*narrow, text).nll, golden["nll_windows_of_64"], tolerance));
  }
}

class TinyText : public ::testing::Test {
 protected:
  TinyText() {
    testing::TinyShape shape;
    shape.context_length = 64;
    testing::write_hugging_face(testing::make_tiny_model(shape), directory_.path() / "tiny");
    model_ = Model::load(directory_.path() / "tiny", {.threads = 1});
  }

  // One token a pass, from the beginning of the window that ends with the context of `token`.
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

  testing::TemporaryDirectory directory_;
  std::shared_ptr<const Model> model_;
};

TEST_F(TinyText, EachTokenIsScoredOnceWithHalfAContextBehindIt) {
  std::vector<TokenId> ids;
  for (int i = 0; i < 150; ++i) ids.push_back((i * 37 + i / 7) % 250);
  std::vector<double> scores = {0};
  EXPECT_TRUE(score_tokens(*model_, ids, [&](std::size_t i, double nll) {
    EXPECT_EQ(i, scores.size());
    scores.push_back(nll);
  }));
  ASSERT_EQ(scores.size(), ids.size());
  // Windows begin every 32 tokens; a token's is the first that reaches to it.
  for (std::size_t token = 1; token < ids.size(); ++token) {
    const std::size_t begin = token < 64 ? 0 : (token - 64) / 32 * 32 + 32;
    EXPECT_TRUE(near(scores[token], by_hand(ids, begin, token), 1e-12)) << token;
  }
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
