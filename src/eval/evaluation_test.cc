// SPDX-License-Identifier: Apache-2.0
// Questions to random models, and the records of their answers.
#include "eval/evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "eval/metrics/chrf.h"
#include "eval/metrics/perplexity.h"
#include "outrider/error.h"
#include "tests/support/models/tiny_pair.h"
#include "tests/support/near.h"
#include "tests/support/temporary_directory.h"

namespace outrider::eval {
namespace {

using test::near;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Question question(int number, const std::string& prompt, const std::string& slice = {}) {
  return {.item = {.number = number,
                   .place = "data, line " + std::to_string(number + 1),
                   .fields = nlohmann::json::object()},
          .prompt = prompt,
          .references = {"the cat sat"},
          .slice = slice};
}

class Asking : public ::testing::Test {
 protected:
  Asking() {
    test::write_tiny_pair(directory_.path());
    model_ = Model::load(directory_.path() / "target", {.threads = 1});
    metrics_.push_back(std::make_unique<Chrf>());
    options_.generate.max_tokens = 12;
    options_.generate.sampling.temperature = 1;
  }

  Generator generator() const {
    return Generator(model_,
                     {.drafter = "model:" + (directory_.path() / "draft").string(), .tree = {}});
  }

  test::TemporaryDirectory directory_;
  std::shared_ptr<const Model> model_;
  Metrics metrics_;
  AskOptions options_;
};

TEST_F(Asking, AnAnswerDependsOnItsItemAndTheSeedAlone) {
  Generator first = generator();
  const auto one = ask(first, *model_, question(1, "red and blue"), metrics_, options_);
  const auto two = ask(first, *model_, question(2, "red and blue"), metrics_, options_);
  Generator second = generator();
  const auto two_again = ask(second, *model_, question(2, "red and blue"), metrics_, options_);
  ASSERT_TRUE(one && two && two_again);
  EXPECT_NE(one->texts, two->texts);
  EXPECT_EQ(two->texts, two_again->texts);
  EXPECT_EQ(two->counts, two_again->counts);
  options_.generate.seed = 1;
  EXPECT_NE(ask(second, *model_, question(2, "red and blue"), metrics_, options_)->texts,
            two->texts);
}

// The family's tokenizer removes a blank at the beginning of a text.
TEST_F(Asking, AnAnswerKeepsTheBlankItBeginsWith) {
  const auto family = Model::load(std::filesystem::path(OUTRIDER_SOURCE_DIR) / "models" / "drafter",
                                  {.threads = 1});
  const Tokenizer& tokenizer = family->tokenizer();
  const auto answer_with = [&](const std::string& text) {
    const std::string prompt = "There was a house";
    const auto whole = tokenizer.encode(prompt + text, false);
    const std::size_t n_prompt = tokenizer.encode(prompt, false).size();
    const auto answerer = [&](const GenerateRequest&) {
      GenerateResult result;
      result.ids.assign(whole.begin() + static_cast<std::ptrdiff_t>(n_prompt), whole.end());
      result.text = tokenizer.decode(result.ids);
      result.finish_reason = FinishReason::stop;
      return result;
    };
    return ask(answerer, *family, question(1, prompt), metrics_, options_)->texts.at(0);
  };
  EXPECT_EQ(answer_with(" that stood"), " that stood");
  EXPECT_EQ(answer_with("    return 1"), "    return 1");
  EXPECT_EQ(answer_with("\nthat stood"), "\nthat stood");
}

TEST_F(Asking, SamplesDifferAndTheirCostAddsUp) {
  options_.n_samples = 3;
  Generator asked = generator();
  const auto record = ask(asked, *model_, question(0, "red and blue"), metrics_, options_);
  ASSERT_TRUE(record);
  ASSERT_EQ(record->texts.size(), 3U);
  EXPECT_NE(record->texts[0], record->texts[1]);
  EXPECT_NE(record->texts[1], record->texts[2]);
  const auto n_prompt = static_cast<std::int64_t>(
      model_->tokenizer().encode("red and blue", /*add_special=*/true).size());
  EXPECT_EQ(record->effort.prompt_tokens, 3 * n_prompt);
  EXPECT_GT(record->effort.emitted, 12);
  EXPECT_GT(record->effort.drafted, 0);
}

TEST_F(Asking, WhatIsWrongWithOneItemNamesIt) {
  Generator asked = generator();
  try {
    ask(asked, *model_, question(16, std::string(5000, 'x')), metrics_, options_);
    FAIL() << "a prompt longer than the context";
  } catch (const ItemError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("data, line 17"), HasSubstr("context")));
  }
  // An error that concerns every item is not reported for an item.
  options_.generate.sampling.top_p = 7;
  try {
    ask(asked, *model_, question(0, "x"), metrics_, options_);
    FAIL() << "top_p of 7";
  } catch (const Error& error) {
    EXPECT_EQ(dynamic_cast<const ItemError*>(&error), nullptr) << error.what();
  }
}

TEST_F(Asking, NothingComesOfACancelledQuestion) {
  const std::atomic<bool> cancel{true};
  options_.generate.cancel = &cancel;
  Generator asked = generator();
  EXPECT_FALSE(ask(asked, *model_, question(0, "red"), metrics_, options_));
  Metrics likelihood;
  likelihood.push_back(std::make_unique<Perplexity>());
  EXPECT_FALSE(read(*model_, question(0, "red"), likelihood, options_));
}

TEST_F(Asking, ReadingCountsTokensAndBytes) {
  Metrics likelihood;
  likelihood.push_back(std::make_unique<Perplexity>());
  const auto record = read(*model_, question(0, "red and blue"), likelihood, options_);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->counts.at("perplexity")[2], 12);
  EXPECT_GT(record->scores.at("perplexity"), 1);
}

Record judged(int number, const std::string& slice, double nll) {
  Record record;
  record.number = number;
  record.slice = slice;
  record.counts["perplexity"] = {nll, 1, 2};
  record.effort.emitted = 4;
  record.effort.target_passes = 2;
  return record;
}

TEST(Summaries, ScoreAllItemsAndEachSlice) {
  Metrics metrics;
  metrics.push_back(std::make_unique<Perplexity>());
  const std::vector<Record> records = {judged(0, "a", 1), judged(1, "a", 3), judged(2, "b", 8)};
  const Summary summary = summarize(records, metrics);
  ASSERT_EQ(summary.all.scores.size(), 3U);
  EXPECT_TRUE(near(summary.all.scores[0].value, std::exp(4.0), 1e-12));
  EXPECT_LE(summary.all.scores[0].interval.low, summary.all.scores[0].value);
  EXPECT_GE(summary.all.scores[0].interval.high, summary.all.scores[0].value);
  EXPECT_FALSE(summary.all.scores[0].larger_is_better);
  ASSERT_EQ(summary.slices.size(), 2U);
  EXPECT_EQ(summary.slices[0].name, "a");
  EXPECT_EQ(summary.slices[0].n_items, 2);
  EXPECT_TRUE(near(summary.slices[0].scores[1].value, 2, 1e-12));
  const auto object = to_json(summary);
  EXPECT_EQ(object["items"], 3);
  EXPECT_EQ(object["stats"]["tau"], 2.0);
  EXPECT_EQ(object["slices"]["b"]["items"], 1);
  EXPECT_THAT(to_text(summary), HasSubstr("perplexity"));
}

TEST(Summaries, OfNothingAndWithoutMetrics) {
  Metrics metrics;
  metrics.push_back(std::make_unique<Perplexity>());
  EXPECT_THAT(summarize({}, metrics).all.scores, IsEmpty());
  EXPECT_EQ(to_json(summarize({}, metrics))["items"], 0);
  const std::vector<Record> records = {judged(0, "", 1)};
  EXPECT_THAT(summarize(records, {}).all.scores, IsEmpty());
  Metrics other;
  other.push_back(std::make_unique<Chrf>());
  EXPECT_THROW(summarize(records, other), Error);
}

}  // namespace
}  // namespace outrider::eval
