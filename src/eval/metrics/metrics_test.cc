// SPDX-License-Identifier: Apache-2.0
// Compares the metrics with the programs that papers quote
// (tests/golden/make/make_metric_goldens.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "eval/metrics/bleu.h"
#include "eval/metrics/chrf.h"
#include "eval/metrics/exact_match.h"
#include "eval/metrics/numeric_answer.h"
#include "eval/metrics/pass_at.h"
#include "eval/metrics/perplexity.h"
#include "eval/metrics/rouge.h"
#include "eval/metrics/words.h"
#include "eval/tasks/item.h"
#include "outrider/error.h"
#include "tests/support/near.h"

namespace outrider::eval {
namespace {

using nlohmann::json;
using test::near;
using ::testing::HasSubstr;

// Scores are at most 100 and computed with a few dozen roundings in double precision, differently
// here and there: 100 * 100 * 2^-53 is 1.2e-12.
constexpr double kTolerance = 1e-11;

const json& goldens() {
  static const json value =
      json::parse(std::ifstream(OUTRIDER_SOURCE_DIR "/tests/golden/metrics.json"));
  return value;
}

std::vector<double> count_of(const Metric& metric, const std::string& text,
                             const std::vector<std::string>& references) {
  const Item item;
  const std::vector<std::string> texts = {text};
  std::vector<double> counts =
      metric.count({.item = item, .texts = texts, .references = references});
  EXPECT_EQ(counts.size(), metric.n_counts());
  return counts;
}

std::vector<double> corpus_scores(const Metric& metric, const json& corpus) {
  std::vector<double> sums(metric.n_counts(), 0.0);
  for (std::size_t i = 0; i < corpus["texts"].size(); ++i) {
    const std::vector<double> counts =
        count_of(metric, corpus["texts"][i], corpus["references"][i]);
    for (std::size_t c = 0; c < sums.size(); ++c) sums[c] += counts[c];
  }
  return metric.scores(sums);
}

TEST(Bleu, CutsWordsAsSacreBleuDoes) {
  ASSERT_GE(goldens()["tokens_13a"].size(), 15U);
  for (const json& golden : goldens()["tokens_13a"]) {
    std::vector<std::string> words;
    for (const std::u32string& word : tokenize_13a(golden["text"].get<std::string>())) {
      words.push_back(to_utf8(word));
    }
    EXPECT_EQ(words, golden["words"].get<std::vector<std::string>>()) << golden["text"];
  }
}

TEST(Bleu, EqualsSacreBleu) {
  ASSERT_GE(goldens()["corpora"].size(), 11U);
  for (const auto& [name, corpus] : goldens()["corpora"].items()) {
    EXPECT_TRUE(near(corpus_scores(Bleu(), corpus)[0], corpus["bleu"], kTolerance)) << name;
  }
}

TEST(Chrf, EqualsSacreBleu) {
  for (const auto& [name, corpus] : goldens()["corpora"].items()) {
    EXPECT_TRUE(near(corpus_scores(Chrf(), corpus)[0], corpus["chrf"], kTolerance)) << name;
  }
}

TEST(Rouge, EqualsRougeScore) {
  for (const auto& [name, corpus] : goldens()["corpora"].items()) {
    const std::vector<double> scores = corpus_scores(Rouge(), corpus);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_TRUE(near(scores[i], corpus["rouge"][i], kTolerance)) << name << " " << i;
    }
    for (std::size_t i = 0; i < corpus["texts"].size(); ++i) {
      const auto each = count_of(Rouge(), corpus["texts"][i], corpus["references"][i]);
      for (std::size_t s = 0; s < 3; ++s) {
        EXPECT_TRUE(near(100 * each[s], corpus["each_rouge"][i][s], kTolerance))
            << name << " " << i;
      }
    }
  }
}

TEST(ExactMatch, EqualsTheProgramOfSquad) {
  ASSERT_GE(goldens()["answers"].size(), 17U);
  for (const json& golden : goldens()["answers"]) {
    std::string normalized;
    for (const std::u32string& word : normalize_answer(golden["answer"].get<std::string>())) {
      normalized += (normalized.empty() ? "" : " ") + to_utf8(word);
    }
    EXPECT_EQ(normalized, golden["normalized"].get<std::string>());
    const auto counts = count_of(ExactMatch(), golden["answer"], golden["references"]);
    EXPECT_EQ(counts[0], golden["exact_match"].get<double>()) << golden["answer"];
    EXPECT_TRUE(near(counts[1], golden["f1"], kTolerance)) << golden["answer"];
  }
}

TEST(ExactMatch, TakesTheWordForNoAnswerAsNone) {
  const ExactMatch metric("unanswerable");
  EXPECT_EQ(count_of(metric, " Unanswerable.\n", {""})[0], 1);
  EXPECT_EQ(count_of(metric, "Paris", {""})[0], 0);
  EXPECT_EQ(count_of(metric, "unanswerable", {"Paris"})[1], 0);
  EXPECT_EQ(count_of(ExactMatch(), "unanswerable", {""})[0], 0);
}

// SQuAD 2.0's program ignores such references, unless there are no others.
TEST(ExactMatch, AReferenceOfArticlesAloneIsNone) {
  EXPECT_EQ(count_of(ExactMatch(), "", {"The", "The Who"})[0], 0);
  EXPECT_EQ(count_of(ExactMatch(), "", {"The", "The Who"})[1], 0);
  EXPECT_EQ(count_of(ExactMatch(), "the who", {"The", "The Who"})[0], 1);
  EXPECT_EQ(count_of(ExactMatch(), "", {"The"})[0], 1);
}

TEST(NumericAnswer, FindsTheNumberAnAnswerEndsIn) {
  struct Sample {
    const char* text;
    const char* number;  // null: none
  };
  const Sample samples[] = {
      {"She makes 9 * 2 = $<<9*2=18>>18 every day.\n#### 18", "18"},
      {"The answer is 1,250.50 dollars.", "1250.5"},
      {"so 3 + 4 = 7.", "7"},
      {"about -5 degrees", "-5"},
      {"it fell to -$3,000", "-3000"},
      {"pages 10-15", "15"},
      {"5-3", "3"},
      {"####-5", "-5"},
      {"**-5**", "-5"},
      {"it is $-5", "-5"},
      {"the change:\t-5", "-5"},
      {"\u22125 degrees", "-5"},
      {"7 \u2212 5", "5"},
      {"f(x)-5", "5"},
      {"145.0", "145"},
      {"0007", "7"},
      {"-0.0", "0"},
      {"-0.50", "-0.5"},
      {".5", "0.5"},
      {"1,2,3", "3"},
      {"12,3456", "3456"},
      {"1,000,000", "1000000"},
      {"no number", nullptr},
      {"", nullptr},
      {"7 apples #### none", nullptr},
      {"#### 4\nNow another #### 5 and 6", "5"},
      {"3.14.", "3.14"},
      {"99999999999999999999.10", "99999999999999999999.1"},
  };
  for (const Sample& sample : samples) {
    const auto number = final_number(sample.text);
    EXPECT_EQ(number.value_or("none"), sample.number == nullptr ? "none" : sample.number)
        << sample.text;
  }
}

TEST(NumericAnswer, ComparesNumbersAndNotSpellings) {
  EXPECT_EQ(count_of(NumericAnswer(), "$1,000.00", {"#### 1000"})[0], 1);
  EXPECT_EQ(count_of(NumericAnswer(), "none", {"12"})[0], 0);
  EXPECT_EQ(count_of(NumericAnswer(), "12", {"13", "12.0"})[0], 1);
  EXPECT_THROW(count_of(NumericAnswer(), "12", {"twelve"}), Error);
}

TEST(Perplexity, IsTheExponentialOfTheMean) {
  const std::vector<double> sums = {3 * std::log(8.0), 3, 9};
  const std::vector<double> scores = Perplexity().scores(sums);
  EXPECT_TRUE(near(scores[0], 8, kTolerance));
  EXPECT_TRUE(near(scores[1], std::log(8.0), kTolerance));
  EXPECT_TRUE(near(scores[2], 1, kTolerance));  // nine bits in nine bytes
  EXPECT_TRUE(std::isnan(Perplexity().scores(std::vector<double>{0, 0, 0})[0]));
}

TEST(PassAt, EstimatesAsCountingSubsetsDoes) {
  ASSERT_GE(goldens()["passes"].size(), 30U);
  for (const json& golden : goldens()["passes"]) {
    EXPECT_TRUE(near(pass_at_k(golden["n"], golden["c"], golden["k"]), golden["estimate"], 1e-14))
        << golden;
  }
}

TEST(PassAt, FindsTheFencedProgram) {
  EXPECT_EQ(code_of("    return 1\n"), "    return 1\n");
  EXPECT_EQ(code_of("Here:\n```python\nx = 1\n```\nand ```y```"), "x = 1\n");
  EXPECT_EQ(code_of("```\nx = 1\n"), "x = 1\n");
  EXPECT_EQ(code_of("    return 1\n```"), "    return 1\n");
  // The prompt began the block.
  EXPECT_EQ(code_of("    return 1\n```\nThis works."), "    return 1\n");
  EXPECT_EQ(code_of("x = 1\n```\nSo:\n```python\nx\n```\n"), "x = 1\n");
  EXPECT_EQ(code_of("Here:\n```python\nx = 1\n"), "x = 1\n");
  EXPECT_EQ(code_of("\n``` \nx = 1\n"), "x = 1\n");
}

}  // namespace
}  // namespace outrider::eval
