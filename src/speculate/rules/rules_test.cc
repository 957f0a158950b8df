// SPDX-License-Identifier: Apache-2.0
// Compares each rule with its formula over dense vectors, and checks its end points.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "speculate/rules/bild_sampled.h"
#include "speculate/rules/budget.h"
#include "speculate/rules/chow.h"
#include "speculate/rules/diff.h"
#include "speculate/rules/lenience.h"
#include "speculate/rules/lossy.h"
#include "speculate/rules/lossy_greedy.h"
#include "speculate/rules/opt.h"
#include "speculate/rules/target_bonus.h"
#include "speculate/rules/token_specific.h"
#include "tests/support/proofs/fixed_views.h"

namespace outrider {
namespace {

using test::FixedViews;
using test::random_logits;
using test::views_of;

// Sums of at most a dozen doubles of size 1, each within a few units of 1e-16.
constexpr double kExact = 1e-13;
constexpr int kVocabulary = 7;

Distribution dist_of(const Rule& rule, FixedViews& views) {
  Distribution dist;
  rule.rule_prob(views, 0, dist);
  return dist;
}

double distance(const Distribution& a, const Distribution& b) {
  double largest = 0;
  for_each_in_either(a, b, [&](TokenId, double in_a, double in_b) {
    const double difference = std::abs(in_a - in_b);
    largest = std::isnan(difference) ? 1.0 : std::max(largest, difference);
  });
  return largest;
}

bool same_bits(const Distribution& a, const Distribution& b) {
  return a.ids == b.ids && a.probs == b.probs;
}

std::vector<SamplingParams> transforms() {
  return {{.temperature = 1},
          {.temperature = 0.6, .top_k = 3},
          {.temperature = 1.4, .top_p = 0.7},
          {.temperature = 1, .min_p = 0.2},
          {.temperature = 0}};
}

// Calls test(views) for random pairs under every transform.
void for_random_views(const std::function<void(FixedViews&)>& test) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 60; ++trial) {
    const auto draft = random_logits(kVocabulary, random);
    const auto target = random_logits(kVocabulary, random);
    for (const SamplingParams& params : transforms()) {
      FixedViews views = views_of(draft, target, Transform(params, kVocabulary));
      test(views);
    }
  }
}

// A rule's formula over dense vectors: the weight of token v.
using Dense = std::vector<double>;
Dense dense(const Distribution& distribution) {
  Dense probs(kVocabulary);
  for (int id = 0; id < kVocabulary; ++id)
    probs[static_cast<std::size_t>(id)] = distribution.prob(id);
  return probs;
}
double largest(const Dense& probs) { return *std::max_element(probs.begin(), probs.end()); }
double entropy_of(const Dense& probs) {
  double sum = 0;
  for (const double prob : probs) sum -= prob > 0 ? prob * std::log(prob) : 0;
  return sum;
}
double tv(const Dense& a, const Dense& b) {
  double sum = 0;
  for (std::size_t v = 0; v < a.size(); ++v) sum += std::max(0.0, a[v] - b[v]);
  return sum;
}

struct Position {
  Dense draft, target, raw_draft, raw_target;
};

// rule_prob of a lossy rule with caps min(draft, cap) and residual max(0, scale * target - draft).
Dense lossy_formula(const Position& at, const std::function<double(double)>& cap, double scale) {
  Dense kept(kVocabulary);
  Dense residual(kVocabulary);
  double n_kept = 0;
  double n_residual = 0;
  for (std::size_t v = 0; v < kVocabulary; ++v) {
    n_kept += kept[v] = std::min(at.draft[v], cap(at.target[v]));
    n_residual += residual[v] = std::max(0.0, scale * at.target[v] - at.draft[v]);
  }
  for (std::size_t v = 0; v < kVocabulary; ++v) {
    if (n_residual > 0) kept[v] += (1 - n_kept) * residual[v] / n_residual;
  }
  return kept;
}

struct Case {
  std::string name;
  std::shared_ptr<const Rule> rule;
  std::function<Dense(const Position&)> formula;
};

Case deferral_case(std::string name, std::shared_ptr<const Rule> rule,
                   std::function<bool(const Position&)> defers) {
  return {std::move(name), std::move(rule), [defers = std::move(defers)](const Position& at) {
            return defers(at) ? at.target : at.draft;
          }};
}

Case token_case(std::string name, TokenSpecificRule::Variant variant, double alpha,
                std::function<bool(const Position&, std::size_t)> refuses) {
  return {std::move(name), std::make_shared<TokenSpecificRule>(variant, alpha),
          [refuses = std::move(refuses)](const Position& at) {
            Dense dist(kVocabulary);
            double eta = 0;
            for (std::size_t v = 0; v < kVocabulary; ++v) eta += refuses(at, v) ? at.draft[v] : 0;
            for (std::size_t v = 0; v < kVocabulary; ++v) {
              dist[v] = (refuses(at, v) ? 0 : at.draft[v]) + at.target[v] * eta;
            }
            return dist;
          }};
}

std::vector<Case> cases() {
  using Variant = TokenSpecificRule::Variant;
  using Distance = BildSampledRule::Distance;
  using Function = LenienceRule::Function;
  std::vector<Case> all;
  for (const double alpha : {-0.3, 0.05, 0.4, 0.8}) {
    all.push_back(
        deferral_case("chow", std::make_shared<ChowRule>(alpha, Loss::zero_one),
                      [alpha](const Position& at) { return largest(at.raw_draft) < 1 - alpha; }));
    all.push_back(
        deferral_case("chow log", std::make_shared<ChowRule>(alpha, Loss::log),
                      [alpha](const Position& at) { return entropy_of(at.raw_draft) > alpha; }));
    all.push_back(deferral_case("diff", std::make_shared<DiffRule>(alpha, Loss::zero_one),
                                [alpha](const Position& at) {
                                  return largest(at.raw_draft) < largest(at.raw_target) - alpha;
                                }));
    all.push_back(deferral_case(
        "diff log", std::make_shared<DiffRule>(alpha, Loss::log), [alpha](const Position& at) {
          return entropy_of(at.raw_draft) > entropy_of(at.raw_target) + alpha;
        }));
    all.push_back(deferral_case(
        "opt", std::make_shared<OptRule>(alpha, Loss::zero_one), [alpha](const Position& at) {
          return largest(at.raw_draft) < largest(at.raw_target) - alpha * tv(at.draft, at.target);
        }));
    all.push_back(deferral_case(
        "opt log", std::make_shared<OptRule>(alpha, Loss::log), [alpha](const Position& at) {
          return entropy_of(at.raw_draft) >
                 entropy_of(at.raw_target) + alpha * tv(at.draft, at.target);
        }));
    all.push_back(
        token_case("token-v1", Variant::v1, alpha, [alpha](const Position& at, std::size_t v) {
          return at.raw_draft[v] < largest(at.raw_target) - alpha;
        }));
    all.push_back(
        token_case("token-v2", Variant::v2, alpha, [alpha](const Position& at, std::size_t v) {
          return at.raw_target[v] < largest(at.raw_target) - alpha;
        }));
    all.push_back(
        token_case("token-v3", Variant::v3, alpha, [alpha](const Position& at, std::size_t v) {
          return at.raw_target[v] < largest(at.raw_target) * (1 - alpha);
        }));
  }
  for (const double alpha : {0.0, 0.3, 0.9}) {
    for (const double beta : {1 - alpha, 1 - alpha / 2, 1.0}) {
      all.push_back({"lossy", std::make_shared<LossyRule>(alpha, beta), [=](const Position& at) {
                       return lossy_formula(
                           at, [alpha](double prob) { return prob / (1 - alpha); }, 1 / beta);
                     }});
    }
  }
  for (const double eps : {1.0, 0.7, 0.2}) {
    all.push_back({"lenience linear", std::make_shared<LenienceRule>(Function::linear, eps),
                   [eps](const Position& at) {
                     return lossy_formula(
                         at, [eps](double prob) { return prob / eps; }, 1);
                   }});
    all.push_back({"lenience square", std::make_shared<LenienceRule>(Function::square, eps),
                   [eps](const Position& at) {
                     return lossy_formula(
                         at, [eps](double prob) { return prob / (eps * eps); }, 1);
                   }});
    all.push_back({"lenience exp", std::make_shared<LenienceRule>(Function::exp, eps),
                   [eps](const Position& at) {
                     return lossy_formula(
                         at, [eps](double prob) { return std::pow(prob, eps); }, 1);
                   }});
  }
  const auto first_largest = [](const Dense& probs) {
    return static_cast<std::size_t>(std::max_element(probs.begin(), probs.end()) - probs.begin());
  };
  for (const double alpha : {0.1, 0.5, 1.5}) {
    all.push_back(deferral_case(
        "bild-sampled surprise", std::make_shared<BildSampledRule>(alpha, Distance::surprise),
        [=](const Position& at) {
          return -std::log(at.raw_target[first_largest(at.raw_draft)]) > alpha;
        }));
    all.push_back(deferral_case(
        "bild-sampled tv", std::make_shared<BildSampledRule>(alpha, Distance::total_variation),
        [alpha](const Position& at) { return tv(at.raw_draft, at.raw_target) > alpha; }));
  }
  return all;
}

TEST(Rules, AreTheirFormulas) {
  for (const Case& test : cases()) {
    double worst = 0;
    for_random_views([&](FixedViews& views) {
      const Position at{dense(views.draft_prob), dense(views.target_prob),
                        dense(views.raw_draft_prob), dense(views.raw_target_prob)};
      const Dense expected = test.formula(at);
      worst = std::max(worst, distance(dist_of(*test.rule, views), Distribution::dense(expected)));
    });
    EXPECT_LT(worst, kExact) << test.name;
  }
}

TEST(Rules, AreDistributions) {
  for (const Case& test : cases()) {
    for_random_views([&](FixedViews& views) {
      const Distribution dist = dist_of(*test.rule, views);
      double sum = 0;
      for (std::size_t i = 0; i < dist.ids.size(); ++i) {
        EXPECT_GE(dist.probs[i], 0) << test.name;
        if (i > 0) {
          EXPECT_LT(dist.ids[i - 1], dist.ids[i]) << test.name;
        }
        sum += dist.probs[i];
      }
      EXPECT_NEAR(sum, 1, kExact) << test.name;
      const double deferral = test.rule->deferral(views, 0, dist);
      EXPECT_GE(deferral, 0);
      EXPECT_LE(deferral, 1);
    });
  }
}

TEST(Rules, LeaveAPositionWithoutADraftToTheTarget) {
  for (const Case& test : cases()) {
    for_random_views([&](FixedViews& views) {
      views.has_draft = false;
      const Distribution dist = dist_of(*test.rule, views);
      EXPECT_TRUE(same_bits(dist, views.target_prob)) << test.name;
      EXPECT_EQ(test.rule->deferral(views, 0, dist), 1) << test.name;
      EXPECT_EQ(cost_of(*test.rule, views, 0, dist).kl, 0) << test.name;
    });
  }
}

// Below: the end points, to the last bit.

void expect_drafters(const Rule& rule) {
  for_random_views([&](FixedViews& views) {
    const Distribution dist = dist_of(rule, views);
    EXPECT_TRUE(same_bits(dist, views.draft_prob)) << rule.name();
    EXPECT_EQ(rule.deferral(views, 0, dist), 0) << rule.name();
  });
}
void expect_targets(const Rule& rule) {
  for_random_views([&](FixedViews& views) {
    const Distribution dist = dist_of(rule, views);
    EXPECT_TRUE(same_bits(dist, views.target_prob)) << rule.name();
    EXPECT_NEAR(rule.deferral(views, 0, dist), 1, kExact) << rule.name();
  });
}

TEST(EndPoints, TheDraftersAtAlphaOne) {
  expect_drafters(ChowRule(1, Loss::zero_one));
  expect_drafters(DiffRule(1, Loss::zero_one));
  expect_drafters(TokenSpecificRule(TokenSpecificRule::Variant::v1, 1));
  expect_drafters(TokenSpecificRule(TokenSpecificRule::Variant::v2, 1));
  expect_drafters(TokenSpecificRule(TokenSpecificRule::Variant::v3, 1));
  expect_drafters(BildSampledRule(1, BildSampledRule::Distance::total_variation));
  expect_drafters(BudgetRule(KlBudget{}));
}

TEST(EndPoints, TheTargetsBelowZero) {
  for (const double alpha : {-1e-9, -0.4, -1.0}) {
    expect_targets(ChowRule(alpha, Loss::zero_one));
    expect_targets(ChowRule(alpha, Loss::log));
    expect_targets(TokenSpecificRule(TokenSpecificRule::Variant::v2, alpha));
    expect_targets(TokenSpecificRule(TokenSpecificRule::Variant::v3, alpha));
  }
}

TEST(EndPoints, TheTargetsAtMinusOne) {
  expect_targets(DiffRule(-1, Loss::zero_one));
  expect_targets(TokenSpecificRule(TokenSpecificRule::Variant::v1, -1));
}

TEST(EndPoints, LossyRulesAtTheStrictEndAreTheTargets) {
  for (const auto& rule : std::vector<std::shared_ptr<const Rule>>{
           std::make_shared<LossyRule>(0, 1.0), std::make_shared<LossyRule>(0, std::nullopt),
           std::make_shared<LenienceRule>(LenienceRule::Function::linear, 1),
           std::make_shared<LenienceRule>(LenienceRule::Function::square, 1),
           std::make_shared<LenienceRule>(LenienceRule::Function::exp, 1),
           std::make_shared<BudgetRule>(KlBudget{.per_token = 0})}) {
    for_random_views([&](FixedViews& views) {
      EXPECT_LT(distance(dist_of(*rule, views), views.target_prob), kExact) << rule->name();
    });
  }
}

TEST(Rules, LinearLenienceIsLossyWithBetaOne) {
  for_random_views([](FixedViews& views) {
    for (const double eps : {0.9, 0.5, 0.05}) {
      const Distribution lenient =
          dist_of(LenienceRule(LenienceRule::Function::linear, eps), views);
      EXPECT_LT(distance(lenient, dist_of(LossyRule(1 - eps, 1.0), views)), kExact);
      // And the square loss with its square root.
      EXPECT_LT(
          distance(lenient,
                   dist_of(LenienceRule(LenienceRule::Function::square, std::sqrt(eps)), views)),
          kExact);
    }
  });
}

// Rules decide on raw distributions and mix transformed ones: at temperature 0 a deferral rule
// still sees the models' confidence.
TEST(Rules, DecideOnRawDistributions) {
  const Transform greedy({.temperature = 0}, 2);
  FixedViews views = views_of({0.0F, 0.1F}, {3.0F, 0.0F}, greedy);  // drafter 0.52, target 0.95
  EXPECT_EQ(dist_of(DiffRule(0.3, Loss::zero_one), views).ids, std::vector<TokenId>{0});
  EXPECT_EQ(dist_of(DiffRule(0.5, Loss::zero_one), views).ids, std::vector<TokenId>{1});
  EXPECT_EQ(dist_of(ChowRule(0.3, Loss::zero_one), views).ids, std::vector<TokenId>{0});
  EXPECT_EQ(dist_of(ChowRule(0.6, Loss::zero_one), views).ids, std::vector<TokenId>{1});
}

TEST(Rules, CostIsMeasuredAgainstTheTarget) {
  FixedViews views = views_of({0.5, 0.5, 0.0}, {0.25, 0.25, 0.5});
  const ChowRule rule(1, Loss::zero_one);
  const RuleCost cost = cost_of(rule, views, 0, dist_of(rule, views));
  EXPECT_NEAR(cost.kl, std::log(2.0), kExact);
  EXPECT_NEAR(cost.total_variation, 0.5, kExact);
  EXPECT_EQ(cost.deferral, 0);
  EXPECT_EQ(cost_of(ExactRule(), views, 0, views.draft_prob).kl, 0);
}

TEST(Rules, TargetBonusAsksForNothingAtLeaves) {
  const TargetBonus rule(std::make_unique<ChowRule>(0.5, Loss::zero_one));
  EXPECT_STREQ(rule.name(), "chow");
  EXPECT_TRUE(rule.needs().draft_prob);
  EXPECT_TRUE(rule.needs().raw_draft);
  EXPECT_FALSE(rule.needs().leaf_draft);
  FixedViews views = views_of({0.75, 0.25}, {0.5, 0.5});
  EXPECT_TRUE(same_bits(dist_of(rule, views), views.draft_prob));
  views.leaf = true;
  EXPECT_TRUE(same_bits(dist_of(rule, views), views.target_prob));
  EXPECT_EQ(rule.deferral(views, 0, views.target_prob), 1);
}

}  // namespace
}  // namespace outrider
