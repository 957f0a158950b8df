// SPDX-License-Identifier: Apache-2.0
#include "sampling/transform.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "base/elementary.h"
#include "base/lane_sum.h"
#include "outrider/error.h"

namespace outrider {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Distribution transformed(const SamplingParams& params, const std::vector<float>& logits) {
  Distribution out{{99, 98}, {0.1, 0.2}};  // previous contents must not matter
  Transform(params, static_cast<int>(logits.size())).distribution(logits, out);
  return out;
}

std::vector<float> penalised(const SamplingParams& params, std::vector<float> logits,
                             const TokenHistory& history, std::vector<TokenId> path = {}) {
  Transform(params, static_cast<int>(logits.size())).penalise(logits, history, path);
  return logits;
}

TokenHistory history_of(const std::vector<TokenId>& prompt, const std::vector<TokenId>& generated) {
  TokenHistory history;
  history.add_prompt(prompt);
  for (TokenId token : generated) history.add_generated(token);
  return history;
}

void expect_is_distribution(const Distribution& distribution, int vocabulary_size) {
  ASSERT_FALSE(distribution.ids.empty());
  ASSERT_EQ(distribution.ids.size(), distribution.probs.size());
  double sum = 0;
  for (std::size_t i = 0; i < distribution.ids.size(); ++i) {
    ASSERT_TRUE(i == 0 || distribution.ids[i - 1] < distribution.ids[i]);
    ASSERT_GT(distribution.probs[i], 0);
    sum += distribution.probs[i];
  }
  ASSERT_GE(distribution.ids.front(), 0);
  ASSERT_LT(distribution.ids.back(), vocabulary_size);
  // Each of n divisions and n additions is off by at most 2^-53 of at most 1.
  ASSERT_NEAR(sum, 1.0, 2 * static_cast<double>(distribution.ids.size()) * 0x1p-53);
}

SamplingParams params_of(const nlohmann::json& json) {
  SamplingParams params;
  params.temperature = json.value("temperature", 1.0);
  params.top_k = json.value("top_k", 0);
  params.top_p = json.value("top_p", 1.0);
  params.min_p = json.value("min_p", 0.0);
  params.repetition_penalty = json.value("repetition_penalty", 1.0);
  for (const auto& entry : json.at("logit_bias")) {
    params.logit_bias.emplace_back(entry[0].get<TokenId>(),
                                   entry[1].is_null() ? -kInfinity : entry[1].get<float>());
  }
  return params;
}

// Compares with Hugging Face's own processors in their order, in float64; see
// make_sampling_golden.py.
TEST(Transform, AgreesWithHuggingFace) {
  std::ifstream file(std::string(OUTRIDER_SOURCE_DIR) + "/tests/golden/sampling.json");
  ASSERT_TRUE(file.is_open());
  const nlohmann::json golden = nlohmann::json::parse(file);
  ASSERT_GE(golden.at("cases").size(), 20u);
  for (const auto& one : golden.at("cases")) {
    SCOPED_TRACE(one.at("params").dump());
    const SamplingParams params = params_of(one.at("params"));
    const auto logits = one.at("logits").get<std::vector<float>>();
    const auto prompt = one.at("prompt").get<std::vector<TokenId>>();
    const auto generated = one.at("generated").get<std::vector<TokenId>>();
    const auto ids = one.at("ids").get<std::vector<TokenId>>();
    const auto probs = one.at("probs").get<std::vector<double>>();
    const Transform transform(params, static_cast<int>(logits.size()));

    double largest = 0;
    for (float logit : logits) largest = std::max(largest, std::abs(static_cast<double>(logit)));
    // Softmax on both sides: an exponent's argument carries three roundings of at most
    // |logit| / temperature, the exponentials 2 units each, the sum and the quotient n + 1
    // roundings, all relative to the result and on both sides.
    double relative =
        2 * 0x1p-53 *
        (3 * 2 * largest / params.temperature + 4 + static_cast<double>(logits.size() + 1));
    // Bias and penalties are rounded to float32 here and not in the golden. That is two steps of
    // half a unit, 2^-24 of at most the largest logit (1.3 times it after the penalty, 2.5 more
    // after the bias). Both the token's and the sum's weights move.
    if (transform.has_penalties()) {
      relative += 2 * 2 * 0x1p-24 * (1.3 * largest + 2.5) / params.temperature;
    }
    // For every division of the generated tokens into committed ones and the node's path.
    for (std::size_t n_path = 0; n_path <= generated.size(); ++n_path) {
      const auto split = generated.end() - static_cast<std::ptrdiff_t>(n_path);
      std::vector<float> row = logits;
      transform.penalise(row, history_of(prompt, {generated.begin(), split}),
                         std::vector<TokenId>(split, generated.end()));
      Distribution got;
      transform.distribution(row, got);
      ASSERT_EQ(got.ids, ids);
      expect_is_distribution(got, static_cast<int>(logits.size()));
      for (std::size_t i = 0; i < ids.size(); ++i) {
        EXPECT_NEAR(got.probs[i], probs[i], relative * probs[i]) << ids[i];
      }
    }
  }
}

// The definitions, literally: sort everything, then cut.
Distribution by_sorting(const SamplingParams& params, const std::vector<float>& logits) {
  std::vector<TokenId> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto logit = [&](TokenId id) { return logits[static_cast<std::size_t>(id)]; };
  std::stable_sort(order.begin(), order.end(),
                   [&](TokenId a, TokenId b) { return logit(a) > logit(b); });
  if (params.top_k > 0 && order.size() > static_cast<std::size_t>(params.top_k)) {
    order.resize(static_cast<std::size_t>(params.top_k));
  }
  std::vector<double> weights;
  const double largest = logit(order[0]);
  double total = 0;
  for (TokenId id : order) {
    weights.push_back(portable_exp((logit(id) - largest) / params.temperature));
    total += weights.back();
  }
  std::size_t n_kept = 0;
  for (double above = 0; n_kept < order.size(); ++n_kept) {
    if (params.top_p < 1 && above >= params.top_p * total) break;
    if (weights[n_kept] < params.min_p) break;
    above += weights[n_kept];
  }
  order.resize(n_kept);
  std::sort(order.begin(), order.end());
  Distribution out;
  for (TokenId id : order) {
    out.ids.push_back(id);
    out.probs.push_back(portable_exp((logit(id) - largest) / params.temperature));
  }
  LaneSum sum;
  for (std::size_t i = 0; i < out.ids.size(); ++i) {
    sum.add(static_cast<std::size_t>(out.ids[i]), out.probs[i]);
  }
  for (double& prob : out.probs) prob *= 1 / sum.total();
  return out;
}

// Sizes and shapes that take every branch of the selections, with many ties (logits on a grid). The
// mass at the boundary is summed in another order here, so the token there may differ if it lies
// within rounding; with these seeds none does.
TEST(Transform, SelectsAsSortingWould) {
  std::mt19937_64 engine(5);
  std::normal_distribution<double> normal;
  for (int round = 0; round < 400; ++round) {
    const std::size_t n = round < 40 ? 20'000 + engine() % 5000 : 1 + engine() % 900;
    const double spread = std::vector<double>{0.01, 1, 3, 10}[engine() % 4];
    const double grid = std::vector<double>{0, 0.5, 4}[engine() % 3];
    std::vector<float> logits(n);
    for (float& logit : logits) {
      double value = normal(engine) * spread;
      if (grid > 0) value = std::round(value / grid) * grid;
      logit = static_cast<float>(value);  // some are -0: equal to 0, and tied with it
    }
    SamplingParams params;
    params.temperature = std::vector<double>{0.3, 1, 2}[engine() % 3];
    if (engine() % 2) params.top_k = static_cast<int>(1 + engine() % (engine() % 2 ? 40 : n));
    if (engine() % 2) params.top_p = std::vector<double>{0.05, 0.5, 0.9, 0.999}[engine() % 4];
    if (engine() % 3 == 0) params.min_p = 0.037;
    const Distribution got = transformed(params, logits);
    const Distribution want = by_sorting(params, logits);
    ASSERT_EQ(got.ids, want.ids) << round;
    expect_is_distribution(got, static_cast<int>(n));
    EXPECT_EQ(got.probs, want.probs) << round;
  }
}

TEST(Transform, TiesGoToTheLowestId) {
  SamplingParams params;
  EXPECT_EQ(transformed(params, {1, 3, 3, 2}).ids, std::vector<TokenId>{1});  // greedy
  params.temperature = 1;
  params.top_k = 1;
  EXPECT_EQ(transformed(params, {1, 3, 3, 2}).ids, std::vector<TokenId>{1});
  params.top_k = 3;  // exactly three; Hugging Face keeps all that tie with the third
  EXPECT_EQ(transformed(params, {2, 5, 2, 2, 2}).ids, (std::vector<TokenId>{0, 1, 2}));
  EXPECT_EQ(transformed(params, {0.0F, -0.0F, 0.0F, -0.0F}).ids, (std::vector<TokenId>{0, 1, 2}));
  params.top_k = 0;
  params.top_p = 0.5;  // four equal tokens: two have exactly one half
  EXPECT_EQ(transformed(params, {1, 1, 1, 1}).ids, (std::vector<TokenId>{0, 1}));
  params.top_p = 0.500001;  // the token that crosses the boundary is kept
  EXPECT_EQ(transformed(params, {1, 1, 1, 1}).ids, (std::vector<TokenId>{0, 1, 2}));
  params.top_p = 1e-300;
  EXPECT_EQ(transformed(params, {1, 1, 1, 1}).ids, std::vector<TokenId>{0});
  params.top_p = 1;
  params.min_p = 1;  // a threshold on probability, not a count: equals are kept together
  EXPECT_EQ(transformed(params, {1, 2, 2, 1}).ids, (std::vector<TokenId>{1, 2}));
}

// If the mass is exactly reached, no further token is taken, even a far less likely one. top_p is 1
// / total, for those totals whose quotient rounds the right way.
TEST(Transform, TheNucleusEndsWhereItsMassIsReached) {
  SamplingParams params;
  params.temperature = 1;
  int n_exact = 0;
  for (int i = 1; i <= 20; ++i) {
    const float logit = -0.25F * static_cast<float>(i);
    const double total = 1 + portable_exp(logit);
    params.top_p = 1 / total;
    if (params.top_p * total != 1) continue;
    ++n_exact;
    EXPECT_EQ(transformed(params, {0, logit}).ids, std::vector<TokenId>{0});
    params.top_p = std::nextafter(params.top_p, 1.0);
    if (params.top_p * total == 1) params.top_p = std::nextafter(params.top_p, 1.0);
    EXPECT_EQ(transformed(params, {0, logit}).ids, (std::vector<TokenId>{0, 1}));
  }
  EXPECT_GT(n_exact, 3);
}

TEST(Transform, StrangeLogits) {
  for (double temperature : {0.0, 1.0, 1e-320, 1e300}) {
    for (int top_k : {0, 1, 2}) {
      for (double top_p : {1.0, 0.9}) {
        SamplingParams params;
        params.temperature = temperature;
        params.top_k = top_k;
        params.top_p = top_p;
        SCOPED_TRACE(temperature);
        // If no token is possible: as if greedy. NaN ranks below -infinity.
        EXPECT_EQ(transformed(params, {-kInfinity, -kInfinity}).ids, std::vector<TokenId>{0});
        EXPECT_EQ(transformed(params, {kNan, -kInfinity}).ids, std::vector<TokenId>{1});
        EXPECT_EQ(transformed(params, {kNan, kNan}).ids, std::vector<TokenId>{0});
        // If one token is possible: that one.
        for (float only : {-3e38F, 0.0F, 3e38F, kInfinity}) {
          const Distribution got = transformed(params, {kNan, -kInfinity, only, kNan, -kInfinity});
          EXPECT_EQ(got.ids, std::vector<TokenId>{2});
          EXPECT_EQ(got.probs, std::vector<double>{1.0});
        }
        // Infinity beats every number.
        EXPECT_EQ(transformed(params, {1, kInfinity, 3e38F}).ids, std::vector<TokenId>{1});
      }
    }
  }
  SamplingParams params;
  params.temperature = 1;
  const Distribution shared = transformed(params, {kInfinity, 0, kNan, kInfinity});
  EXPECT_EQ(shared.ids, (std::vector<TokenId>{0, 3}));
  EXPECT_EQ(shared.probs, (std::vector<double>{0.5, 0.5}));
  // -infinity and NaN are dropped and take none of the k places.
  params.top_k = 4;
  EXPECT_EQ(transformed(params, {kNan, 1, -kInfinity, 2, kNan, -kInfinity}).ids,
            (std::vector<TokenId>{1, 3}));
}

TEST(Transform, SmallTemperaturesTendToGreedy) {
  SamplingParams params;
  for (double temperature : {1e-2, 1e-6, 1e-300, 5e-324}) {
    params.temperature = temperature;
    const Distribution got = transformed(params, {-20, 30, 22, 3e38F, 30});
    EXPECT_EQ(got.ids, std::vector<TokenId>{3});
    EXPECT_EQ(got.probs, std::vector<double>{1.0});
    // Equals get equal probabilities.
    const Distribution tied = transformed(params, {-20, 30, 22, 30});
    EXPECT_EQ(tied.ids, (std::vector<TokenId>{1, 3}));
    EXPECT_EQ(tied.probs, (std::vector<double>{0.5, 0.5}));
  }
  params.temperature = 0;
  EXPECT_EQ(transformed(params, {-20, 30, 22, 30}).ids, std::vector<TokenId>{1});
}

TEST(Transform, RawIsThePlainSoftmax) {
  SamplingParams params;
  params.temperature = 0.2;
  params.top_k = 1;
  params.top_p = 0.1;
  params.min_p = 0.9;
  const std::vector<float> logits = {0, 1, -kInfinity, 2, kNan};
  Distribution raw;
  Transform(params, 5).raw_distribution(logits, raw);
  SamplingParams plain;
  plain.temperature = 1;
  const Distribution want = transformed(plain, logits);
  EXPECT_EQ(raw.ids, (std::vector<TokenId>{0, 1, 3}));
  EXPECT_EQ(raw.ids, want.ids);
  EXPECT_EQ(raw.probs, want.probs);
  Transform(params, 2).raw_distribution(std::vector<float>{-kInfinity, -kInfinity}, raw);
  EXPECT_EQ(raw.ids, std::vector<TokenId>{0});
}

TEST(Transform, KnowsWhetherItKeepsTheRawDistribution) {
  const std::vector<float> logits = {0.5F, -1.0F, -kInfinity, 3.0F, -2000.0F};
  const auto same = [&](const SamplingParams& params) {
    const Transform transform(params, 5);
    Distribution raw;
    Distribution dist;
    transform.raw_distribution(logits, raw);
    transform.distribution(logits, dist);
    return transform.keeps_raw() && raw.ids == dist.ids && raw.probs == dist.probs;
  };
  EXPECT_TRUE(same({.temperature = 1}));
  for (const SamplingParams& params :
       {SamplingParams{.temperature = 0}, SamplingParams{.temperature = 0.5},
        SamplingParams{.temperature = 1, .top_k = 3},
        SamplingParams{.temperature = 1, .top_p = 0.9},
        SamplingParams{.temperature = 1, .min_p = 0.1}}) {
    EXPECT_FALSE(Transform(params, 5).keeps_raw());
  }
}

// Powers of two make every step exact.
TEST(Transform, PenaltiesInTheirOrder) {
  SamplingParams params;
  params.logit_bias = {{0, 1.0F}, {3, -2.0F}, {3, -4.0F}};
  params.repetition_penalty = 2;
  params.presence_penalty = 0.5;
  params.frequency_penalty = 0.25;
  const std::vector<float> logits = {3, 4, -4, 4, 8, 0};
  // 0: biased to 4, halved (it is in the prompt). 1: halved, presence once, frequency twice. 2:
  // negative, so doubled; presence once, frequency once. 3: biased by both entries to -2, then
  // doubled, being in the text. 4: untouched. 5: zero stays zero under repetition.
  const TokenHistory history = history_of({0, 0, 3}, {1, 2, 1, 5});
  EXPECT_EQ(penalised(params, logits, history),
            (std::vector<float>{2, 2 - 0.5F - 0.5F, -8 - 0.75F, -4, 8, -0.75F}));
}

TEST(Transform, ThePathCountsAsGenerated) {
  SamplingParams params;
  params.repetition_penalty = 2;
  params.presence_penalty = 1;
  params.frequency_penalty = 0.5;
  const std::vector<float> logits = {8, 8, 8, 8, 8};
  const TokenHistory history = history_of({0, 1}, {1, 2});
  EXPECT_EQ(penalised(params, logits, history), (std::vector<float>{4, 2.5F, 2.5F, 8, 8}));
  // 0 was only in the prompt; 1 was generated once, now three times; 3 is new and twice on the
  // path.
  const std::vector<float> on_path = penalised(params, logits, history, {3, 1, 0, 3, 1});
  EXPECT_EQ(on_path, (std::vector<float>{2.5F, 1.5F, 2.5F, 2, 8}));
  // Once those tokens are committed the node's logits are the same, bit by bit.
  EXPECT_EQ(on_path, penalised(params, logits, history_of({0, 1}, {1, 2, 3, 1, 0, 3, 1})));
  // Frequency penalty alone: still once per occurrence.
  SamplingParams frequency;
  frequency.frequency_penalty = 1;
  EXPECT_EQ(penalised(frequency, logits, TokenHistory{}, {4, 4}),
            (std::vector<float>{8, 8, 8, 8, 6}));
  // A prompt may hold ids beyond the logits.
  EXPECT_EQ(penalised(params, logits, history_of({70, -1}, {}), {71}), logits);
}

// For any number of tokens, however close together; compares with a plain map.
TEST(TokenHistory, CountsEveryToken) {
  std::mt19937 random(3);
  for (const std::size_t reserved : {0, 10, 5000}) {
    TokenHistory history;
    history.reserve(reserved);
    std::map<TokenId, int> generated;
    EXPECT_FALSE(history.contains(0));
    for (int i = 0; i < 3000; ++i) {
      const auto token = static_cast<TokenId>(random() % 2 ? random() % 500 : random() % 200'000);
      if (i % 3 == 0) {
        history.add_prompt(std::vector<TokenId>{token});
        generated[token] += 0;
      } else {
        history.add_generated(token);
        ++generated[token];
      }
    }
    ASSERT_EQ(history.counts().size(), generated.size());
    for (const TokenHistory::Count& count : history.counts()) {
      ASSERT_EQ(count.generated, generated.at(count.token));
      ASSERT_TRUE(history.contains(count.token));
    }
    for (TokenId token = 0; token < 1000; ++token) {
      ASSERT_EQ(history.contains(token), generated.contains(token));
    }
  }
}

TEST(Transform, KnowsWhetherItPenalises) {
  EXPECT_FALSE(Transform(SamplingParams{}, 4).has_penalties());
  SamplingParams params;
  params.temperature = 2, params.top_k = 3, params.top_p = 0.5, params.min_p = 0.1;
  EXPECT_FALSE(Transform(params, 4).has_penalties());
  const std::vector<float> logits = {1, -1, kNan, -kInfinity};
  const std::vector<float> same = penalised(params, logits, history_of({0, 1, 2, 3}, {0, 1}));
  EXPECT_EQ(same[0], 1);
  EXPECT_EQ(same[1], -1);
  for (int which = 0; which < 4; ++which) {
    SamplingParams one;
    if (which == 0) one.repetition_penalty = 1.1;
    if (which == 1) one.presence_penalty = -0.1;
    if (which == 2) one.frequency_penalty = 0.1;
    if (which == 3) one.logit_bias = {{1, 0.5F}};
    EXPECT_TRUE(Transform(one, 4).has_penalties()) << which;
  }
}

TEST(Transform, RefusesWhatCannotBeMeant) {
  const double nan = std::nan("");
  const double infinity = std::numeric_limits<double>::infinity();
  const auto refuses = [](auto change) {
    SamplingParams params;
    change(params);
    EXPECT_THROW(Transform(params, 10), UsageError);
  };
  for (double bad : {-1.0, nan, infinity}) refuses([=](auto& p) { p.temperature = bad; });
  for (double bad : {0.0, -0.1, 1.1, nan}) refuses([=](auto& p) { p.top_p = bad; });
  for (double bad : {-0.1, 1.1, nan}) refuses([=](auto& p) { p.min_p = bad; });
  for (double bad : {0.0, -1.0, nan, infinity})
    refuses([=](auto& p) { p.repetition_penalty = bad; });
  for (double bad : {nan, infinity}) refuses([=](auto& p) { p.presence_penalty = bad; });
  for (double bad : {nan, infinity}) refuses([=](auto& p) { p.frequency_penalty = bad; });
  for (TokenId bad : {-1, 10}) refuses([=](auto& p) { p.logit_bias = {{bad, 1.0F}}; });
  for (float bad : {kNan, kInfinity}) refuses([=](auto& p) { p.logit_bias = {{1, bad}}; });
  refuses([](auto& p) { p.top_k = -1; });
  EXPECT_THROW(Transform(SamplingParams{}, 0), UsageError);
  try {
    SamplingParams params;
    params.top_p = 1.5;
    Transform(params, 10);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "[sampling] top-p: expected above 0 and at most 1, got 1.5");
  }
}

TEST(LikeliestTokens, RanksWithTiesToTheLowestId) {
  std::vector<TokenId> ids = {7, 7};
  likeliest_tokens(std::vector<float>{1, 3, 2, 3, -1}, 3, ids);
  EXPECT_EQ(ids, (std::vector<TokenId>{1, 3, 2}));
  likeliest_tokens(std::vector<float>{1, 1, 1, 1}, 2, ids);
  EXPECT_EQ(ids, (std::vector<TokenId>{0, 1}));
  likeliest_tokens(std::vector<float>{0.0F, -0.0F, -kInfinity, kNan}, 9, ids);
  EXPECT_EQ(ids, (std::vector<TokenId>{0, 1}));
  likeliest_tokens(std::vector<float>{kNan, 1, kInfinity}, 3, ids);
  EXPECT_EQ(ids, (std::vector<TokenId>{2, 1}));
  // The first one is temperature 0's choice, even if no token is possible.
  for (const std::vector<float>& logits : std::vector<std::vector<float>>{
           {kNan, kNan}, {-kInfinity, -kInfinity}, {kNan, -kInfinity}, {2, 5, 5}}) {
    likeliest_tokens(logits, 2, ids);
    EXPECT_EQ(ids[0], transformed({.temperature = 0}, logits).ids[0]);
  }
}

TEST(LikeliestTokens, AgreesWithSorting) {
  std::mt19937 random(5);
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<float> logits(700);
    for (float& logit : logits) logit = static_cast<float>(random() % 40);
    std::vector<TokenId> order(logits.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](TokenId a, TokenId b) {
      return logits[static_cast<std::size_t>(a)] > logits[static_cast<std::size_t>(b)];
    });
    for (const std::size_t count : {1, 10, 300, 700}) {
      std::vector<TokenId> ids;
      likeliest_tokens(logits, static_cast<int>(count), ids);
      EXPECT_EQ(ids, std::vector<TokenId>(order.begin(),
                                          order.begin() + static_cast<std::ptrdiff_t>(count)));
    }
  }
}

}  // namespace
}  // namespace outrider
