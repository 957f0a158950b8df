// SPDX-License-Identifier: Apache-2.0
#include "eval/along_texts/teacher_forced.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "eval/along_texts/forced_report.h"
#include "eval/along_texts/texts.h"
#include "eval/frontiers/expected_passes.h"
#include "model/load_model.h"
#include "outrider/error.h"
#include "speculate/rules/make_rule.h"
#include "tests/support/models/table_model.h"
#include "tests/support/proofs/fixed_views.h"

namespace outrider::eval {
namespace {

using outrider::test::TableModel;
using outrider::test::views_of;

constexpr int kVocabulary = 5;

std::vector<RuleSetting> rules(const std::string& list) { return expand_rules(list, {}); }

// The sums defined in teacher_forced.h, position by position, from both models' tables.
ForcedSums directly(TableModel& target, TableModel& drafter, const std::string& spec,
                    const SamplingParams& sampling, const std::vector<TokenId>& tokens,
                    std::vector<double>& acceptance) {
  const std::shared_ptr<const Rule> rule = make_rule(spec);
  const Transform transform(sampling, kVocabulary);
  ForcedSums sums;
  acceptance.clear();
  for (std::size_t i = 1; i < tokens.size(); ++i) {
    const std::vector<TokenId> prefix(tokens.begin(),
                                      tokens.begin() + static_cast<std::ptrdiff_t>(i));
    auto views = views_of(drafter.logits(prefix), target.logits(prefix), transform);
    views.spent = sums.kl;
    Distribution emitted;
    rule->rule_prob(views, 0, emitted);
    double accepted = 0;
    double kl = 0;
    double tv = 0;
    for (TokenId v = 0; v < kVocabulary; ++v) {
      const double prob = emitted.prob(v);
      const double target_prob = views.target_prob.prob(v);
      accepted += std::min(prob, views.draft_prob.prob(v));
      if (prob > 0) kl += prob * std::log(prob / target_prob);
      tv += std::abs(prob - target_prob) / 2;
    }
    ++sums.n_tokens;
    sums.rejection += 1 - accepted;
    sums.nll -= std::log(emitted.prob(tokens[i]));
    sums.hits += emitted.prob(tokens[i]);
    if (rule->needs().draft_prob) {
      sums.kl += std::max(kl, 0.0);
      sums.tv += tv;
    }
    sums.deferral += rule->deferral(views, 0, emitted);
    acceptance.push_back(accepted);
  }
  return sums;
}

// Infinity is near only itself.
void expect_near(double got, double expected, const std::string& what) {
  if (std::isinf(expected)) {
    EXPECT_EQ(got, expected) << what;
  } else {
    EXPECT_NEAR(got, expected, 1e-12 * (1 + std::abs(expected))) << what;
  }
}

std::vector<TokenId> some_text(int n_tokens) {
  std::vector<TokenId> tokens = {0};
  for (int i = 1; i < n_tokens; ++i) tokens.push_back((i * i + i / 3) % kVocabulary);
  return tokens;
}

TEST(TeacherForced, EqualsTheDirectComputation) {
  TableModel target(kVocabulary, 1);
  TableModel drafter(kVocabulary, 2);
  const std::vector<SamplingParams> samplings = {
      {.temperature = 1}, {.temperature = 0}, {.temperature = 0.7, .top_k = 3, .top_p = 0.9}};
  for (const int n_threads : {1, 3}) {
    TeacherForced forced(
        target, drafter,
        {.rules = rules("exact,chow,diff,opt,token-v1,token-v2,token-v3,lossy:beta=auto,"
                        "lenience:f=exp,budget,budget:total=2,bild-sampled,chow:loss=log,"
                        "lossy-greedy,diff:alpha=0.1|0.2,bonus=target"),
         .samplings = samplings,
         .lengths = {1, 4},
         .n_threads = n_threads});
    const std::vector<std::vector<TokenId>> texts = {some_text(40), some_text(7)};
    for (const auto& tokens : texts) {
      const Window window{.tokens = tokens, .n_given = 1};
      forced.add_text({&window, 1});
    }
    ASSERT_GT(forced.settings().size(), 300U);
    for (const ForcedSetting& setting : forced.settings()) {
      for (std::size_t text = 0; text < texts.size(); ++text) {
        std::vector<double> acceptance;
        const ForcedSums expected =
            directly(target, drafter, setting.rule.rule, setting.sampling, texts[text], acceptance);
        const ForcedSums& got = setting.texts[text];
        const std::string what =
            setting.rule.rule + " at " + std::to_string(setting.sampling.temperature);
        EXPECT_EQ(got.n_tokens, expected.n_tokens);
        expect_near(got.rejection, expected.rejection, what);
        expect_near(got.nll, expected.nll, what);
        expect_near(got.hits, expected.hits, what);
        expect_near(got.kl, expected.kl, what);
        expect_near(got.tv, expected.tv, what);
        expect_near(got.deferral, expected.deferral, what);
        expect_near(got.passes[0], expected_passes(acceptance, 1), what);
        expect_near(got.passes[1], expected_passes(acceptance, 4), what);
      }
    }
  }
}

// alpha = 1 is the drafter, alpha < 0 and exact are the target.
TEST(TeacherForced, EndsAreTheTwoModels) {
  TableModel target(kVocabulary, 3);
  TableModel drafter(kVocabulary, 4);
  const std::vector<TokenId> tokens = some_text(30);
  double of_target = 0;
  double of_drafter = 0;
  for (std::size_t i = 1; i < tokens.size(); ++i) {
    const std::vector<TokenId> prefix(tokens.begin(),
                                      tokens.begin() + static_cast<std::ptrdiff_t>(i));
    const auto nll = [&](const std::vector<float>& logits) {
      double sum = 0;
      for (const float logit : logits) sum += std::exp(double{logit});
      return std::log(sum) - double{logits[static_cast<std::size_t>(tokens[i])]};
    };
    of_target += nll(target.logits(prefix));
    of_drafter += nll(drafter.logits(prefix));
  }
  TeacherForced forced(
      target, drafter,
      {.rules = rules("exact,chow:alpha=-0.01,diff:alpha=-1,token-v1:alpha=-1,token-v2:alpha=-0.01,"
                      "token-v3:alpha=-0.01,lossy:alpha=0,budget:kl=0,chow:alpha=1,diff:alpha=1,"
                      "token-v1:alpha=1,token-v2:alpha=1,token-v3:alpha=1"),
       .samplings = {{.temperature = 1}},
       .lengths = {}});
  const Window window{.tokens = tokens, .n_given = 1};
  forced.add_text({&window, 1});
  ASSERT_EQ(forced.settings().size(), 13U);
  for (std::size_t index = 0; index < 13; ++index) {
    const ForcedSetting& setting = forced.settings()[index];
    const bool is_drafter = index >= 8;
    expect_near(setting.texts[0].nll, is_drafter ? of_drafter : of_target, setting.rule.rule);
    if (is_drafter) expect_near(setting.texts[0].rejection, 0, setting.rule.rule);
    if (!is_drafter) expect_near(setting.texts[0].tv, 0, setting.rule.rule);
  }
}

TEST(TeacherForced, WindowsOfATextAddUp) {
  TableModel target(kVocabulary, 5);
  TableModel drafter(kVocabulary, 6);
  const ForcedOptions options{
      .rules = rules("token-v3:alpha=0.3"), .samplings = {{.temperature = 1}}, .lengths = {3}};
  const std::vector<Window> windows = {{.tokens = some_text(9), .n_given = 1},
                                       {.tokens = some_text(12), .n_given = 5}};
  TeacherForced both(target, drafter, options);
  both.add_text(windows);
  TeacherForced single(target, drafter, options);
  single.add_text({windows.data(), 1});
  single.add_text({windows.data() + 1, 1});
  const ForcedSums& sum = both.settings()[0].texts[0];
  const ForcedSums& first = single.settings()[0].texts[0];
  const ForcedSums& second = single.settings()[0].texts[1];
  EXPECT_EQ(first.n_tokens, 8);
  EXPECT_EQ(second.n_tokens, 7);
  EXPECT_EQ(sum.n_tokens, 15);
  expect_near(sum.hits, first.hits + second.hits, "hits");
  // A round may cross windows, but not texts.
  EXPECT_LE(sum.passes[0], first.passes[0] + second.passes[0]);
}

// A document may have as many windows as a novel: progress is reported, and it can be cancelled.
TEST(TeacherForced, SaysHowFarATextIs) {
  TableModel target(kVocabulary, 5);
  TableModel drafter(kVocabulary, 6);
  const std::vector<Window> windows = {{.tokens = some_text(9), .n_given = 1},
                                       {.tokens = some_text(12), .n_given = 5}};
  TeacherForced forced(
      target, drafter,
      {.rules = rules("exact"), .samplings = {{.temperature = 1}}, .lengths = {3}});
  std::vector<std::int64_t> told;
  forced.add_text(windows, [&](std::int64_t n_positions) { told.push_back(n_positions); });
  EXPECT_EQ(told, (std::vector<std::int64_t>{0, 8, 8, 15}));
  struct Ended {};
  int n_calls = 0;
  EXPECT_THROW(forced.add_text(windows,
                               [&](std::int64_t) {
                                 if (++n_calls == 3) throw Ended();
                               }),
               Ended);
  EXPECT_EQ(n_calls, 3);
}

TEST(TeacherForced, WhereTheDrafterKnowsNothingThePositionIsTheTargets) {
  TableModel target(kVocabulary, 7);
  TableModel small(3, 8);                      // does not know tokens 3 and 4
  TableModel near_sighted(kVocabulary, 8, 4);  // four tokens of context
  const Window window{.tokens = {0, 1, 2, 1, 4, 0, 2}, .n_given = 1};
  for (TableModel* drafter : {&small, &near_sighted}) {
    TeacherForced forced(
        target, *drafter,
        {.rules = rules("chow:alpha=1"), .samplings = {{.temperature = 1}}, .lengths = {2}});
    forced.add_text({&window, 1});
    // Positions after 0, 1, 2, 1 are the drafter's; the next two are the target's.
    const ForcedSums& sums = forced.settings()[0].texts[0];
    expect_near(sums.rejection, 2, "rejection");
    expect_near(sums.deferral, 2, "deferral");
    EXPECT_GT(sums.tv, 0);
  }
  EXPECT_THROW(
      TeacherForced(near_sighted, target,
                    {.rules = rules("exact"), .samplings = {{.temperature = 1}}, .lengths = {}})
          .add_text({&window, 1}),
      Error);
}

TEST(TeacherForced, RefusesWhatItCannotMeasure) {
  const auto check = [](const std::string& list, std::vector<SamplingParams> samplings) {
    check_forced({.rules = rules(list), .samplings = std::move(samplings), .lengths = {5}});
  };
  EXPECT_NO_THROW(check("chow,lossy-greedy", {{.temperature = 0}, {.temperature = 1}}));
  EXPECT_THROW(check("chow,lossy-greedy", {{.temperature = 1}}), UsageError);
  EXPECT_THROW(check("typical", {{.temperature = 1}}), UsageError);
  EXPECT_THROW(check("bild", {{.temperature = 0}}), UsageError);
  EXPECT_THROW(check("chow", {{.temperature = -1}}), UsageError);
  EXPECT_THROW(check("chow", {{.temperature = 1, .presence_penalty = 1}}), UsageError);
}

// A greedy rule is evaluated at temperature 0 only, the others at every one.
TEST(TeacherForced, LeavesOutWhatATransformDoesNotFit) {
  TableModel target(kVocabulary, 1);
  TableModel drafter(kVocabulary, 2);
  const TeacherForced forced(target, drafter,
                             {.rules = rules("exact,lossy-greedy:alpha=0.5"),
                              .samplings = {{.temperature = 0}, {.temperature = 1}},
                              .lengths = {}});
  EXPECT_EQ(forced.settings().size(), 3U);
}

TEST(ForcedReport, MeansIntervalsAndFiles) {
  TableModel target(kVocabulary, 1);
  TableModel drafter(kVocabulary, 2);
  TeacherForced forced(target, drafter,
                       {.rules = rules("exact,lossy:alpha=0.5,beta=auto"),
                        .samplings = {{.temperature = 1}, {.temperature = 0}},
                        .lengths = {2}});
  for (int n = 5; n < 12; ++n) {
    const Window window{.tokens = some_text(n), .n_given = 1};
    forced.add_text({&window, 1});
  }
  const std::vector<ForcedRow> rows = forced_rows(forced);
  ASSERT_EQ(rows.size(), 4U);
  double hits = 0;
  double tokens = 0;
  double passes = 0;
  for (const ForcedSums& text : forced.settings()[1].texts) {
    hits += text.hits;
    tokens += static_cast<double>(text.n_tokens);
    passes += text.passes[0];
  }
  EXPECT_DOUBLE_EQ(rows[1].hits.value, hits / tokens);
  EXPECT_DOUBLE_EQ(rows[1].tau[0].value, tokens / passes);
  EXPECT_LT(rows[1].hits.low, rows[1].hits.value);
  EXPECT_GT(rows[1].hits.high, rows[1].hits.value);
  EXPECT_EQ(rows[2].nll.value, std::numeric_limits<double>::infinity());  // temperature 0

  const std::string csv = forced_csv(rows, forced.lengths());
  EXPECT_NE(csv.find("temperature,top_k,top_p,rule,family,parameter,value,nll,nll_low,nll_high,"),
            std::string::npos);
  EXPECT_NE(csv.find("1,0,1,\"lossy:beta=auto,alpha=0.5\",\"lossy:beta=auto\",alpha,0.5,"),
            std::string::npos);
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 5);
  const auto json = forced_json(rows, {.lengths = {2}});
  const auto parsed = nlohmann::json::parse(json.dump());
  EXPECT_EQ(parsed["settings"].size(), 4U);
  EXPECT_EQ(parsed["settings"][1]["alpha"], 0.5);
  EXPECT_TRUE(parsed["settings"][2]["nll"][0].is_null());
}

// Figures published with the pair, measured with another program on 400 of these stories up to 256
// tokens each. Which ones, and how their ends were cut, is not known exactly. The figures are
// within the intervals of the first 400.
TEST(TeacherForced, StoryPairHasTheFiguresMeasuredElsewhere) {
  const std::filesystem::path data = OUTRIDER_SHARED_DATA;
  const std::filesystem::path text = data / "text" / "tinystories_2MiB.txt";
  if (!std::filesystem::exists(text)) GTEST_SKIP() << "no shared data folder";
  const auto target = load_model(data / "models" / "stories260K", {.n_threads = 1});
  const auto drafter = load_model(data / "models" / "weak260K", {.n_threads = 1});
  const auto tokenizer = Tokenizer::load(data / "models" / "stories260K");
  TeacherForced forced(*target, *drafter,
                       {.rules = rules("exact,chow:alpha=1"),
                        .samplings = {{.temperature = 1}, {.temperature = 0}}});
  for (const std::string& story : read_documents({&text, 1}, "<|endoftext|>", 400)) {
    const std::vector<Window> windows = windows_of({.text = story}, *tokenizer, 256);
    forced.add_text({windows.data(), 1});
  }
  const std::vector<ForcedRow> rows = forced_rows(forced);
  const auto expect_within = [](const Figure& figure, double elsewhere) {
    EXPECT_LT(figure.low, elsewhere);
    EXPECT_GT(figure.high, elsewhere);
    EXPECT_LT(figure.high - figure.low, 0.05 * elsewhere);
  };
  expect_within(rows[0].nll, 1.4866);
  expect_within(rows[1].nll, 2.1082);
  expect_within(rows[0].rejection, 1 - 0.6366);
  // At temperature 0 a drafted token is accepted if both models' likeliest tokens agree.
  expect_within(rows[2].rejection, 1 - 0.6031);
}

}  // namespace
}  // namespace outrider::eval
