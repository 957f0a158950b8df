// SPDX-License-Identifier: Apache-2.0
// The real pair, teacher-forced over 400 stories, compared with the figures of Hugging Face
// transformers for the same tokens. The figures are both models' loss, the overlap of their
// distributions (the probability that a drafted token is accepted), their agreement, and the
// overlap after all sampling transforms.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "model/load_model.h"
#include "outrider/tokenizer.h"
#include "sampling/transform.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

std::string strip(std::string_view text) {
  constexpr std::string_view kBlank = " \t\n\r\f\v";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(kBlank) - begin + 1));
}

std::vector<std::string> first_stories(std::size_t n_stories) {
  std::ifstream file(fs::path(OUTRIDER_SHARED_DATA) / "text" / "tinystories_2MiB.txt");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  constexpr std::string_view kEnd = "<|endoftext|>";
  std::vector<std::string> stories;
  for (std::size_t begin = 0; stories.size() < n_stories;) {
    const std::size_t end = text.find(kEnd, begin);
    stories.push_back(strip(std::string_view(text).substr(begin, end - begin)));
    begin = end + kEnd.size();
  }
  return stories;
}

// All rows of one pass over a new sequence.
void run(LanguageModel& model, std::span<const TokenId> tokens, ForwardOutput& output) {
  const auto sequence = model.open({});
  const TokenBlock block{sequence.get(), tokens, {}};
  model.forward({&block, 1}, {.logits = {.kind = RowSet::Kind::all, .rows = {}}}, output);
}

TEST(RealPair, StatisticsAreHuggingFaces) {
  const fs::path models = fs::path(OUTRIDER_SHARED_DATA) / "models";
  if (!fs::exists(models / "stories260K" / "config.json")) GTEST_SKIP() << "no shared data folder";
  std::ifstream golden_file(fs::path(OUTRIDER_SOURCE_DIR) /
                            "tests/golden/story_pair_statistics.json");
  const nlohmann::json golden = nlohmann::json::parse(golden_file);

  const auto tokenizer = Tokenizer::load(models / "stories260K");
  const auto target = load_model(models / "stories260K", {.n_threads = 1});
  const auto drafter = load_model(models / "weak260K", {.n_threads = 1});
  const int n_vocabulary = target->config().vocabulary_size;
  const Transform plain({.temperature = 1}, n_vocabulary);
  const Transform transformed(
      {.temperature = 0.7, .top_k = 20, .top_p = 0.9, .repetition_penalty = 1.2}, n_vocabulary);

  const auto stories = first_stories(golden.at("n_stories"));
  ForwardOutput target_output;
  ForwardOutput draft_output;
  Distribution target_prob;
  Distribution draft_prob;
  double n_scored = 0, nll_target = 0, nll_drafter = 0, sum_overlap = 0, n_agreed = 0,
         sum_transformed = 0;
  for (std::size_t story = 0; story < stories.size(); ++story) {
    std::vector<TokenId> tokens = tokenizer->encode(stories[story], true);
    const auto& expected = golden.at("stories").at(story);  // tokens, tokens kept, checksum
    ASSERT_EQ(tokens.size(), expected.at(0).get<std::size_t>()) << story;
    tokens.resize(expected.at(1).get<std::size_t>());
    std::int64_t check = 0;
    for (std::size_t index = 0; index < tokens.size(); ++index) {
      check += static_cast<std::int64_t>(index + 1) * tokens[index];
    }
    ASSERT_EQ(check, expected.at(2).get<std::int64_t>()) << story;

    const std::span<const TokenId> fed = std::span(tokens).first(tokens.size() - 1);
    run(*target, fed, target_output);
    run(*drafter, fed, draft_output);
    for (std::size_t index = 0; index < fed.size(); ++index) {
      const auto target_logits = target_output.logits_row(static_cast<int>(index));
      const auto draft_logits = draft_output.logits_row(static_cast<int>(index));
      plain.distribution(target_logits, target_prob);
      plain.distribution(draft_logits, draft_prob);
      nll_target -= std::log(target_prob.prob(tokens[index + 1]));
      nll_drafter -= std::log(draft_prob.prob(tokens[index + 1]));
      sum_overlap += overlap(target_prob, draft_prob);
      n_agreed += target_prob.argmax() == draft_prob.argmax() ? 1 : 0;
      n_scored += 1;

      TokenHistory history;
      history.add_prompt(fed.first(index + 1));
      std::vector<float> row(target_logits.begin(), target_logits.end());
      transformed.penalise(row, history, {});
      transformed.distribution(row, target_prob);
      row.assign(draft_logits.begin(), draft_logits.end());
      transformed.penalise(row, history, {});
      transformed.distribution(row, draft_prob);
      sum_transformed += overlap(target_prob, draft_prob);
    }
  }

  const auto& reference = golden.at("float64");
  EXPECT_EQ(n_scored, golden.at("n_scored").get<double>());
  // Logits differ by about 3e-6 between float implementations, and mean losses and overlaps by no
  // more.
  EXPECT_NEAR(nll_target / n_scored, reference.at("nll_target").get<double>(), 3e-6);
  EXPECT_NEAR(nll_drafter / n_scored, reference.at("nll_drafter").get<double>(), 3e-6);
  EXPECT_NEAR(sum_overlap / n_scored, reference.at("overlap").get<double>(), 3e-6);
  // A near tie may be broken differently: a handful of positions in a hundred thousand.
  EXPECT_NEAR(n_agreed / n_scored, reference.at("agreement").get<double>(), 1e-4);
  EXPECT_NEAR(sum_transformed / n_scored, reference.at("overlap_transformed").get<double>(), 1e-4);
}

}  // namespace
}  // namespace outrider
