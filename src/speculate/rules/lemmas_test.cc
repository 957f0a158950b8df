// SPDX-License-Identifier: Apache-2.0
// Compares the rules with what "Faster Cascades via Speculative Decoding" (Narasimhan et al., 2024)
// proves about them. (Lemmas on emitted tokens: engine/proofs/rule_exactness_test.cc.)
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "speculate/rules/diff.h"
#include "speculate/rules/lossy.h"
#include "speculate/rules/opt.h"
#include "tests/support/proofs/fixed_views.h"

namespace outrider {
namespace {

using test::FixedViews;
using test::random_logits;
using test::views_of;

constexpr double kExact = 1e-13;  // a dozen roundings of numbers near 1
constexpr int kVocabulary = 6;

FixedViews random_views(std::mt19937& random, const SamplingParams& params = {.temperature = 1}) {
  const auto draft = random_logits(kVocabulary, random);
  const auto target = random_logits(kVocabulary, random);
  return views_of(draft, target, Transform(params, kVocabulary));
}

bool defers(const Rule& rule, FixedViews& views) {
  Distribution dist;
  rule.rule_prob(views, 0, dist);
  return rule.deferral(views, 0, dist) == 1;
}

// Lemma 2: with beta = auto, the map max(min(draft, target / (1 - alpha)), target / beta) is a
// normalised distribution. It is what lossy sampling on a chain emits.
TEST(Lemmas, LossySamplingAsATargetDistribution) {
  std::mt19937 random(2);
  int n_between = 0;
  for (int trial = 0; trial < 200; ++trial) {
    for (const SamplingParams& params :
         {SamplingParams{.temperature = 1}, SamplingParams{.temperature = 0.8, .top_k = 3}}) {
      FixedViews views = random_views(random, params);
      for (const double alpha : {0.05, 0.4, 0.9}) {
        const double floor = auto_floor(views.draft_prob, views.target_prob, 1 / (1 - alpha));
        EXPECT_GE(floor, 0);
        EXPECT_LE(floor, 1);
        n_between += floor > 0.01 && floor < 0.99 ? 1 : 0;
        double accepted = 0;
        double residual = 0;
        double sum = 0;
        for (TokenId v = 0; v < kVocabulary; ++v) {
          const double draft = views.draft_prob.prob(v);
          const double target = views.target_prob.prob(v);
          accepted += std::min(draft, target / (1 - alpha));
          residual += std::max(0.0, floor * target - draft);
          sum += std::max(std::min(draft, target / (1 - alpha)), floor * target);
        }
        EXPECT_NEAR(sum, 1, kExact);
        Distribution dist;
        LossyRule(alpha, std::nullopt).rule_prob(views, 0, dist);
        for (TokenId v = 0; v < kVocabulary; ++v) {
          const double draft = views.draft_prob.prob(v);
          const double target = views.target_prob.prob(v);
          const double mapped = std::max(std::min(draft, target / (1 - alpha)), floor * target);
          EXPECT_NEAR(dist.prob(v), mapped, kExact);
          // The sampler: a token is accepted as drawn, or rejected and redrawn from the residual.
          const double drawn_and_accepted =
              draft > 0 ? draft * std::min(1.0, target / ((1 - alpha) * draft)) : 0.0;
          const double redrawn =
              residual > 0 ? (1 - accepted) * std::max(0.0, floor * target - draft) / residual
                           : 0.0;
          EXPECT_NEAR(dist.prob(v), drawn_and_accepted + redrawn, kExact);
        }
      }
    }
  }
  EXPECT_GT(n_between, 100);
}

// A few prefixes, with the cost of deferring or not at each by the plug-in estimates.
struct Prefixes {
  std::vector<FixedViews> views;
  std::vector<double> draft_loss, target_loss, tv;
};

Prefixes random_prefixes(std::mt19937& random, Loss loss) {
  Prefixes prefixes;
  for (int i = 0; i < 7; ++i) {
    prefixes.views.push_back(random_views(random, {.temperature = 0.8}));
    const FixedViews& views = prefixes.views.back();
    prefixes.draft_loss.push_back(expected_loss(views.raw_draft_prob, loss));
    prefixes.target_loss.push_back(expected_loss(views.raw_target_prob, loss));
    prefixes.tv.push_back(total_variation(views.draft_prob, views.target_prob));
  }
  return prefixes;
}

// Totals of all 2^n deferral rules (bit i: defers at prefix i).
struct Totals {
  double loss = 0, rejection = 0, n_deferred = 0;
};
Totals totals(const Prefixes& prefixes, unsigned rule) {
  Totals sum;
  for (std::size_t i = 0; i < prefixes.views.size(); ++i) {
    const bool deferred = (rule >> i & 1U) != 0;
    sum.loss += deferred ? prefixes.target_loss[i] : prefixes.draft_loss[i];
    sum.rejection += deferred ? prefixes.tv[i] : 0;
    sum.n_deferred += deferred ? 1 : 0;
  }
  return sum;
}

template <class Rule>
unsigned bits_of(Prefixes& prefixes, double alpha, Loss loss) {
  unsigned bits = 0;
  for (std::size_t i = 0; i < prefixes.views.size(); ++i) {
    bits |= defers(Rule(alpha, loss), prefixes.views[i]) ? 1U << i : 0U;
  }
  return bits;
}

// Lemmas 1 and 4: over all deferral rules, diff minimises loss + alpha * deferrals and opt
// minimises loss + alpha * rejections.
TEST(Lemmas, DiffAndOptMinimiseTheirObjectives) {
  std::mt19937 random(4);
  for (const Loss loss : {Loss::zero_one, Loss::log}) {
    for (int trial = 0; trial < 40; ++trial) {
      Prefixes prefixes = random_prefixes(random, loss);
      for (const double alpha : {-0.4, 0.0, 0.15, 0.6}) {
        const Totals diff = totals(prefixes, bits_of<DiffRule>(prefixes, alpha, loss));
        const Totals opt = totals(prefixes, bits_of<OptRule>(prefixes, alpha, loss));
        for (unsigned rule = 0; rule < 1U << prefixes.views.size(); ++rule) {
          const Totals other = totals(prefixes, rule);
          EXPECT_LE(diff.loss + alpha * diff.n_deferred,
                    other.loss + alpha * other.n_deferred + kExact);
          EXPECT_LE(opt.loss + alpha * opt.rejection,
                    other.loss + alpha * other.rejection + kExact);
        }
      }
    }
  }
}

// Appendix D: opt with price alpha has the least loss within its own number of rejections. Every
// budget at a corner of the trade-off is reached by some price.
TEST(Lemmas, ConstrainedAndLagrangianFormsAgree) {
  std::mt19937 random(8);
  for (int trial = 0; trial < 40; ++trial) {
    Prefixes prefixes = random_prefixes(random, Loss::zero_one);
    for (double alpha = 0; alpha <= 3; alpha += 0.1) {
      const Totals opt = totals(prefixes, bits_of<OptRule>(prefixes, alpha, Loss::zero_one));
      for (unsigned rule = 0; rule < 1U << prefixes.views.size(); ++rule) {
        const Totals other = totals(prefixes, rule);
        if (other.rejection <= opt.rejection) {
          EXPECT_LE(opt.loss, other.loss + kExact);
        }
      }
    }
    // The corners take prefixes in order of loss saved per rejection. Their prices are these
    // ratios.
    std::vector<double> prices;
    for (std::size_t i = 0; i < prefixes.views.size(); ++i) {
      prices.push_back((prefixes.draft_loss[i] - prefixes.target_loss[i]) / prefixes.tv[i]);
    }
    std::sort(prices.begin(), prices.end());
    for (std::size_t i = 0; i + 1 < prices.size(); ++i) {
      const double between = (prices[i] + prices[i + 1]) / 2;
      const Totals opt = totals(prefixes, bits_of<OptRule>(prefixes, between, Loss::zero_one));
      EXPECT_EQ(opt.n_deferred, static_cast<double>(prices.size() - i - 1));
    }
  }
}

// Lemma 5: against the truth, the plug-in rule loses at most max |truth - draft| + max |truth -
// target|.
TEST(Lemmas, RegretOfThePlugIn) {
  std::mt19937 random(5);
  double closest = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    FixedViews views = random_views(random);
    const FixedViews other = random_views(random);
    // The truth is near the target, near the drafter, or anywhere.
    const double near = trial % 3 == 0 ? 0.0 : 0.9;
    const Distribution& anchor = trial % 3 == 1 ? views.draft_prob : views.target_prob;
    const auto truth = [&](TokenId v) {
      return near * anchor.prob(v) + (1 - near) * other.target_prob.prob(v);
    };
    const double alpha = -0.5 + 2.0 * static_cast<double>(random() % 1000) / 1000;
    const double draft_loss = 1 - truth(views.draft_prob.argmax());
    const double target_loss = 1 - truth(views.target_prob.argmax()) +
                               alpha * total_variation(views.draft_prob, views.target_prob);
    const bool deferred = defers(OptRule(alpha, Loss::zero_one), views);
    const double regret = (deferred ? target_loss : draft_loss) - std::min(draft_loss, target_loss);
    double draft_error = 0;
    double target_error = 0;
    for (TokenId v = 0; v < kVocabulary; ++v) {
      draft_error = std::max(draft_error, std::abs(truth(v) - views.draft_prob.prob(v)));
      target_error = std::max(target_error, std::abs(truth(v) - views.target_prob.prob(v)));
    }
    EXPECT_LE(regret, draft_error + target_error + kExact);
    closest = std::max(closest, regret / (draft_error + target_error));
  }
  EXPECT_GT(closest, 0.5);  // the bound is nearly tight
}

}  // namespace
}  // namespace outrider
