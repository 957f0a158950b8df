// SPDX-License-Identifier: Apache-2.0
// Exactness on real weights: stories260K is the target, weak260K the drafter.
//
// Every emitted token x is mapped to U = F(x-) + V * prob(x). F and prob belong to the target's own
// distribution at that position, and V is uniform noise (the randomised probability integral
// transform). If tokens are drawn as promised, U is uniform and independent from token to token,
// whatever the drafter proposed. All noise is seeded: the tests either always pass or always fail.
// Levels: a p-value of 1e-6 for each of about 200 comparisons bounds the chance of bad seeds for a
// correct build by 2e-4.
//
// OUTRIDER_NIGHTLY=1 runs a million tokens per configuration instead of 20,000, and combines all
// parameters instead of any two.
#include "tests/support/models/real_pair.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "engine/drafting/make_tree_shape.h"
#include "engine/speculation.h"
#include "model/load_model.h"
#include "outrider/tokenizer.h"
#include "sampling/counter_chance.h"
#include "speculate/decoder.h"
#include "speculate/drafters/model_drafter.h"
#include "speculate/tree_shapes/fixed_shape.h"
#include "tests/support/pairs_of_the_day.h"
#include "tests/support/statistics.h"

namespace outrider {
namespace {

using test::continue_stories;
using test::IntegralTransform;
using test::nightly;
using test::RealPair;

struct Configuration {
  const char* verify;
  int draft_length;
  bool value_dependent;
  bool all_transforms;
  // If set, the shape of the draft in place of a chain; draft_length is then its depth.
  const char* tree = nullptr;
  const char* name = "";

  std::shared_ptr<const TreeShape> shape() const {
    return tree == nullptr ? chain_shape(draft_length) : make_tree_shape(tree);
  }
};

std::unique_ptr<Acceptance> acceptance_of(const std::string& verify) {
  auto rule = std::make_shared<ExactRule>();
  if (verify == "exact") return make_multi_round(rule);
  if (verify == "block") return make_block(rule);
  if (verify == "traversal") return make_traversal(rule);
  return make_coupled(rule);
}

SamplingParams sampling_of(bool all_transforms) {
  if (!all_transforms) return {.temperature = 1};
  return {.temperature = 0.7, .top_k = 20, .top_p = 0.9, .repetition_penalty = 1.2};
}

class ExactOnRealPair : public ::testing::TestWithParam<Configuration> {};

TEST_P(ExactOnRealPair, EmittedTokensFollowTheTarget) {
  RealPair* pair = RealPair::load();
  if (pair == nullptr) GTEST_SKIP() << "no shared data folder";
  const Configuration& configuration = GetParam();
  const auto acceptance = acceptance_of(configuration.verify);
  const ConfidenceStop stop(0.4);
  Decoder decoder(pair->target(), configuration.draft_length == 0 ? nullptr : &pair->drafter(),
                  *acceptance, configuration.shape(),
                  configuration.value_dependent ? &stop : nullptr);

  const std::size_t n_tokens = nightly() ? 1'000'000 : 20'000;
  IntegralTransform transformed(static_cast<std::uint64_t>(configuration.draft_length));
  double sum_overlap = 0;
  double n_first_accepted = 0;
  double n_first = 0;
  const auto commit = [&](Stream& stream, const Committed& committed) {
    transformed.add(stream, committed);
    if (committed.logits_node == 0 && stream.tree.n_drafted() > 0) {
      n_first += 1;
      n_first_accepted += committed.node > 0 ? 1 : 0;
      sum_overlap += overlap(stream.views.target(0), *stream.views.draft(0));
    }
    return false;
  };
  continue_stories(*pair, decoder, sampling_of(configuration.all_transforms), commit,
                   [&] { return transformed.n_tokens() >= n_tokens; });
  transformed.expect_uniform_and_independent();
  EXPECT_GE(transformed.n_depths(), configuration.draft_length + 1);
  RecordProperty("first_acceptance", std::to_string(n_first_accepted / n_first));
  RecordProperty("overlap", std::to_string(sum_overlap / n_first));
  if (std::string(configuration.verify) == "exact" && configuration.shape()->is_chain()) {
    // The standard error of n Bernoulli draws is at most 0.5 / sqrt(n): 0.01 is at least five of
    // them.
    EXPECT_NEAR(n_first_accepted / n_first, sum_overlap / n_first,
                std::max(0.01, 2.5 / std::sqrt(n_first)));
  }
}

std::vector<Configuration> configurations() {
  std::vector<Configuration> all;
  // Coupled output is bit-identical to plain sampling (Lossless tests), so its own distribution is
  // tested: with nothing drafted, and with a draft.
  for (const int length : {0, 5}) {
    for (const bool all_transforms : {false, true}) {
      all.push_back({"coupled", length, false, all_transforms});
    }
  }
  for (const char* verify : {"exact", "block"}) {
    for (const int length : {1, 2, 5}) {
      for (const bool value_dependent : {false, true}) {
        for (const bool all_transforms : {false, true}) {
          all.push_back({verify, length, value_dependent, all_transforms});
        }
      }
    }
  }
  // By day any two of verification, length, stop and transforms; in nightly runs all.
  all = test::pairs_of_the_day(all, [](const Configuration& one) {
    return test::CaseValues{one.verify, std::to_string(one.draft_length),
                            one.value_dependent ? "stops" : "",
                            one.all_transforms ? "all" : "temperature"};
  });
  for (const char* verify : {"exact", "traversal"}) {
    all.push_back({verify, 3, false, false, "widths:3,2,1", "Widths"});
    all.push_back({verify, 3, false, false, "widths:2,2,1,siblings=with", "WidthsWith"});
    all.push_back({verify, 5, true, true, "static:eagle1", "Eagle1"});
    all.push_back({verify, 5, false, true, "dynamic:total=16,depth=5,topk=4", "Dynamic"});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(, ExactOnRealPair, ::testing::ValuesIn(configurations()),
                         [](const ::testing::TestParamInfo<Configuration>& info) {
                           const Configuration& configuration = info.param;
                           return std::string(configuration.verify) +
                                  std::to_string(configuration.draft_length) + configuration.name +
                                  (configuration.value_dependent ? "ValueDependent" : "Fixed") +
                                  (configuration.all_transforms ? "AllTransforms" : "Temperature1");
                         });

// The first three tokens together. They are compared with the target's distribution, computed token
// by token from its logits, and with a sample of plain decoding.
class FirstTokens {
 public:
  using Tokens = std::vector<TokenId>;
  using Counts = std::map<Tokens, double>;
  static constexpr std::size_t kLength = 3;

  FirstTokens(RealPair& pair, bool all_transforms)
      : pair_(&pair),
        transform_(sampling_of(all_transforms), pair.target().config().vocabulary_size) {}

  // Drafts of draft_length tokens; 0 means plain sampling without drafts. Draw i has the seed
  // `seed` + i.
  Counts draw(const Acceptance& acceptance, int draft_length, std::uint64_t seed) {
    const int n_draws = nightly() ? 100'000 : 10'000;
    Counts counts;
    Decoder decoder(pair_->target(), draft_length == 0 ? nullptr : &pair_->drafter(), acceptance,
                    chain_shape(draft_length), nullptr);
    for (int index = 0; index < n_draws; ++index) {
      CounterChance chance(seed + static_cast<std::uint64_t>(index));
      Stream stream(0, kPrompt, transform_, chance);
      // Enough for whole drafts.
      stream.max_total = stream.n_prompt + std::max<int>(kLength, draft_length + 1);
      decoder.begin(stream);
      Stream* const streams[] = {&stream};
      while (stream.tokens.size() < kPrompt.size() + kLength) {
        decoder.round(streams, [](Stream&, const Committed&) { return false; });
      }
      decoder.end(stream);
      const auto first = stream.tokens.begin() + stream.n_prompt;
      counts[{first, first + kLength}] += 1;
    }
    return counts;
  }

  test::ChiSquare against_distribution(const Counts& counts) {
    std::vector<double> seen;
    std::vector<double> probs;
    for (const auto& [tokens, count] : counts) {
      seen.push_back(count);
      double prob = 1;
      for (std::size_t n = 0; n < kLength; ++n) {
        prob *=
            next({tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(n)}).prob(tokens[n]);
      }
      probs.push_back(prob);
    }
    return test::chi_square_one_sample(seen, probs);
  }

 private:
  // The distribution after the prompt and `begun`, from a pass of its own.
  const Distribution& next(const Tokens& begun) {
    const auto [entry, is_new] = dists_.try_emplace(begun);
    if (!is_new) return entry->second;
    Tokens tokens = kPrompt;
    tokens.insert(tokens.end(), begun.begin(), begun.end());
    const auto sequence = pair_->target().open({});
    const TokenBlock block{.sequence = sequence.get(), .tokens = tokens, .parents = {}};
    ForwardOutput output;
    pair_->target().forward(
        {&block, 1}, {.logits = {.kind = RowSet::Kind::last_of_each_block, .rows = {}}}, output);
    std::vector<float> logits(output.logits_row(0).begin(), output.logits_row(0).end());
    TokenHistory history;
    history.add_prompt(kPrompt);
    for (const TokenId token : begun) history.add_generated(token);
    transform_.penalise(logits, history, {});
    transform_.distribution(logits, entry->second);
    return entry->second;
  }

  static inline const Tokens kPrompt = {1, 291};  // "The": the continuation is open.
  RealPair* pair_;
  Transform transform_;
  std::map<Tokens, Distribution> dists_;
};

constexpr double kFirstTokensLevel = 1e-4;
constexpr double kMinDegrees = 10;  // With fewer there would be nothing to distinguish.

class PlainFirstTokensOnRealPair : public ::testing::TestWithParam<bool> {};

TEST_P(PlainFirstTokensOnRealPair, JointDistributionIsTheTargets) {
  RealPair* pair = RealPair::load();
  if (pair == nullptr) GTEST_SKIP() << "no shared data folder";
  FirstTokens first_tokens(*pair, GetParam());
  const auto plain = make_coupled(std::make_shared<ExactRule>());
  const test::ChiSquare result = first_tokens.against_distribution(first_tokens.draw(*plain, 0, 1));
  EXPECT_GT(result.tail, kFirstTokensLevel)
      << "chi-square " << result.statistic << " with " << result.degrees << " degrees of freedom";
  EXPECT_GE(result.degrees, kMinDegrees);
  RecordProperty("tail", std::to_string(result.tail));
}

INSTANTIATE_TEST_SUITE_P(, PlainFirstTokensOnRealPair, ::testing::Bool(), [](const auto& info) {
  return std::string(info.param ? "AllTransforms" : "Temperature1");
});

class FirstTokensOnRealPair : public ::testing::TestWithParam<std::tuple<const char*, int, bool>> {
};

TEST_P(FirstTokensOnRealPair, JointDistributionIsPlainSamplings) {
  RealPair* pair = RealPair::load();
  if (pair == nullptr) GTEST_SKIP() << "no shared data folder";
  const char* const verify = std::get<0>(GetParam());
  const int length = std::get<1>(GetParam());
  FirstTokens first_tokens(*pair, std::get<2>(GetParam()));
  // A separate sample for every configuration: a shared one would correlate the results.
  const std::uint64_t seed = 1'000'000'000ULL * (1 + 2 * static_cast<std::uint64_t>(length)) +
                             (std::string(verify) == "block" ? 100'000'000'000ULL : 0);
  const auto drafted = first_tokens.draw(*acceptance_of(verify), length, seed);
  const auto plain =
      first_tokens.draw(*make_coupled(std::make_shared<ExactRule>()), 0, seed + 1'000'000'000ULL);

  const test::ChiSquare to_dist = first_tokens.against_distribution(drafted);
  EXPECT_GT(to_dist.tail, kFirstTokensLevel)
      << "chi-square " << to_dist.statistic << " with " << to_dist.degrees << " degrees of freedom";
  EXPECT_GE(to_dist.degrees, kMinDegrees);

  FirstTokens::Counts merged_drafted = drafted;
  FirstTokens::Counts merged_plain = plain;
  for (const auto& [tokens, count] : plain) merged_drafted.try_emplace(tokens, 0.0);
  for (const auto& [tokens, count] : drafted) merged_plain.try_emplace(tokens, 0.0);
  std::vector<double> a;
  std::vector<double> b;
  for (const auto& [tokens, count] : merged_plain) a.push_back(count);
  for (const auto& [tokens, count] : merged_drafted) b.push_back(count);
  const test::ChiSquare to_plain = test::chi_square_two_samples(a, b);
  EXPECT_GT(to_plain.tail, kFirstTokensLevel) << "chi-square " << to_plain.statistic << " with "
                                              << to_plain.degrees << " degrees of freedom";
  EXPECT_GE(to_plain.degrees, kMinDegrees);
  RecordProperty("tail_law", std::to_string(to_dist.tail));
  RecordProperty("tail_plain", std::to_string(to_plain.tail));
}

INSTANTIATE_TEST_SUITE_P(, FirstTokensOnRealPair,
                         ::testing::ValuesIn(test::product_of_the_day(std::vector{"exact", "block"},
                                                                      std::vector{1, 2, 5},
                                                                      std::vector{false, true})),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param)) +
                                  std::to_string(std::get<1>(info.param)) +
                                  (std::get<2>(info.param) ? "AllTransforms" : "Temperature1");
                         });

}  // namespace
}  // namespace outrider
