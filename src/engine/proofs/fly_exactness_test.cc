// SPDX-License-Identifier: Apache-2.0
// FLy by enumeration: compares the loop's output with FLy's definition, a process over two models'
// distributions that spells out every mismatch, window and draw.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "speculate/acceptances/fly.h"
#include "speculate/rules/make_rule.h"
#include "speculate/tree_shapes/fixed_shape.h"
#include "tests/support/proofs/enumerated_process.h"
#include "tests/support/proofs/exactness.h"
#include "tests/support/proofs/rule_pair.h"
#include "tests/support/proofs/written_text.h"

namespace outrider {
namespace {

using test::distance;
using test::enumerate;
using test::kCaught;
using test::kExact;
using test::RulePair;
using test::TextDistribution;
using test::transforms;
using test::Trial;
using test::views_behind;
using test::write_text;
using test::WrittenText;

using Tokens = std::vector<TokenId>;

const Tokens kPrompt = {0, 2};

// --- The definition --------------------------------------------------------------------------

struct Definition {
  RulePair* pair;
  SamplingParams sampling;
  int n_tokens = 3;
  int length = 3;
  FlyLimits limits;

  test::FixedViews behind(const Tokens& emitted) const {
    return views_behind({.trial = {.target = &pair->target, .sampling = sampling, .prompt = {0, 2}},
                         .draft_table = &pair->draft_table},
                        emitted);
  }
};

bool is_unsure(const Distribution& raw, const FlyLimits& limits) {
  std::vector<double> probs = raw.probs;
  std::sort(probs.rbegin(), probs.rend());
  double sum = 0;
  for (int i = 0; i < limits.top && i < static_cast<int>(probs.size()); ++i) {
    const double prob = probs[static_cast<std::size_t>(i)];
    if (prob > 0) sum -= prob * std::log(prob);
  }
  return sum >= limits.entropy;
}

Distribution residual(const Distribution& target, const Distribution& draft) {
  Distribution left;
  double mass = 0;
  for (std::size_t i = 0; i < target.ids.size(); ++i) {
    const double prob = std::max(0.0, target.probs[i] - draft.prob(target.ids[i]));
    left.ids.push_back(target.ids[i]);
    left.probs.push_back(prob);
    mass += prob;
  }
  for (double& prob : left.probs) prob /= mass;
  return left;
}

void add_text(const Definition& fly, const Tokens& emitted, double prob, TextDistribution& dist);

void add_next(const Definition& fly, const Tokens& emitted, const Distribution& next, double prob,
              TextDistribution& dist) {
  for (std::size_t i = 0; i < next.ids.size(); ++i) {
    if (next.probs[i] <= 0) continue;
    Tokens longer = emitted;
    longer.push_back(next.ids[i]);
    add_text(fly, longer, prob * next.probs[i], dist);
  }
}

// The number of drafted tokens kept, given which of them the exact rule would accept.
int n_standing(const Definition& fly, const std::vector<test::FixedViews>& views,
               const Tokens& draft, const std::vector<bool>& taken) {
  const int n = static_cast<int>(draft.size());
  int at = 0;
  while (at < n) {
    const auto index = static_cast<std::size_t>(at);
    if (taken[index]) {
      ++at;
      continue;
    }
    const test::FixedViews& here = views[index];
    const Distribution& asked =
        here.target_prob.ids.size() > 1 ? here.target_prob : here.raw_target_prob;
    bool stands = is_unsure(here.raw_target_prob, fly.limits) && asked.prob(draft[index]) > 0;
    for (int behind = 1; behind <= fly.limits.window; ++behind) {
      stands = stands && at + behind < n && taken[static_cast<std::size_t>(at + behind)];
    }
    if (!stands) return at;
    at += 1 + fly.limits.window;
  }
  return n;
}

// Enumerates every draft after the emitted tokens, and for each, every subset that the exact rule
// accepts.
void add_rounds(const Definition& fly, const Tokens& emitted, int length,
                std::vector<test::FixedViews>& views, Tokens& draft, std::vector<bool>& taken,
                double prob, TextDistribution& dist) {
  Tokens prefix = emitted;
  prefix.insert(prefix.end(), draft.begin(), draft.end());
  views.push_back(fly.behind(prefix));
  if (static_cast<int>(draft.size()) == length) {
    const int n = n_standing(fly, views, draft, taken);
    Tokens standing = emitted;
    standing.insert(standing.end(), draft.begin(), draft.begin() + n);
    const test::FixedViews& last = views[static_cast<std::size_t>(n)];
    add_next(fly, standing,
             n == length ? last.target_prob : residual(last.target_prob, last.draft_prob), prob,
             dist);
    views.pop_back();
    return;
  }
  const Distribution proposal = views.back().draft_prob;
  const Distribution target = views.back().target_prob;
  for (std::size_t i = 0; i < proposal.ids.size(); ++i) {
    const double accept = std::min(1.0, target.prob(proposal.ids[i]) / proposal.probs[i]);
    for (const bool takes : {true, false}) {
      const double share = takes ? accept : 1 - accept;
      if (share < 1e-14) continue;  // rounding, not an outcome
      draft.push_back(proposal.ids[i]);
      taken.push_back(takes);
      add_rounds(fly, emitted, length, views, draft, taken, prob * proposal.probs[i] * share, dist);
      draft.pop_back();
      taken.pop_back();
    }
  }
  views.pop_back();
}

void add_text(const Definition& fly, const Tokens& emitted, double prob, TextDistribution& dist) {
  const int n_left = fly.n_tokens - static_cast<int>(emitted.size());
  if (n_left == 0) {
    dist[emitted] += prob;
    return;
  }
  std::vector<test::FixedViews> views;
  Tokens draft;
  std::vector<bool> taken;
  add_rounds(fly, emitted, std::min(fly.length, n_left - 1), views, draft, taken, prob, dist);
}

TextDistribution dist_of(const Definition& fly) {
  TextDistribution dist;
  add_text(fly, {}, 1.0, dist);
  return dist;
}

// --- Comparison with the loop ----------------------------------------------------------------

Trial trial_of(const Definition& fly, const Acceptance& acceptance) {
  return {.target = &fly.pair->target,
          .drafter = &fly.pair->drafter,
          .acceptance = &acceptance,
          .draft_length = fly.length,
          .sampling = fly.sampling,
          .prompt = {0, 2},
          .n_tokens = fly.n_tokens};
}

// The largest error over transforms, models and limits.
double worst_error(const std::function<std::unique_ptr<Acceptance>(const FlyLimits&)>& make) {
  double worst = 0;
  for (const FlyLimits& limits : {FlyLimits{.entropy = 0.6, .top = 3, .window = 1},
                                  FlyLimits{.entropy = 0.7, .top = 2, .window = 1},
                                  FlyLimits{.entropy = 0, .top = 3, .window = 2}}) {
    const auto acceptance = make(limits);
    for (const auto& [name, sampling] : transforms()) {
      for (std::uint32_t seed = 1; seed <= 4; ++seed) {
        RulePair pair(seed);
        const Definition fly{
            .pair = &pair, .sampling = sampling, .n_tokens = 4, .length = 3, .limits = limits};
        const TextDistribution expected = dist_of(fly);
        worst = std::max(worst, distance(enumerate(trial_of(fly, *acceptance)).dist, expected));
      }
    }
  }
  return worst;
}

template <class Steps>
std::unique_ptr<Acceptance> made(const FlyLimits& limits) {
  return std::make_unique<Fly<Steps>>(limits);
}

TEST(Fly, EmitsWhatItsDefinitionDoes) { EXPECT_LT(worst_error(made<FlySteps>), kExact); }

struct AlwaysUnsure : FlySteps {
  static bool is_unsure(const Distribution&, const FlyLimits&) { return true; }
};
struct UnsureOnTheOtherSide : FlySteps {
  static bool is_unsure(const Distribution& raw, const FlyLimits& limits) {
    return !FlySteps::is_unsure(raw, limits);
  }
};
struct WholeEntropy : FlySteps {
  static bool is_unsure(const Distribution& raw, const FlyLimits& limits) {
    return entropy(raw) >= limits.entropy;
  }
};
struct NoWindow : FlySteps {
  static bool is_enough(int, const FlyLimits&) { return true; }
};
struct WindowShortByOne : FlySteps {
  static bool is_enough(int n_behind, const FlyLimits& limits) {
    return n_behind >= limits.window - 1;
  }
};
struct AllowsAnything : FlySteps {
  static bool is_allowed(NodeViews&, int, TokenId) { return true; }
};
struct AllowsWhatIsCutOff : FlySteps {
  static bool is_allowed(NodeViews& views, int node, TokenId token) {
    return views.raw_target(node).prob(token) > 0;
  }
};

TEST(Fly, BrokenStepsAreCaught) {
  EXPECT_GT(worst_error(made<AlwaysUnsure>), kCaught);
  EXPECT_GT(worst_error(made<UnsureOnTheOtherSide>), kCaught);
  EXPECT_GT(worst_error(made<WholeEntropy>), kCaught);
  EXPECT_GT(worst_error(made<NoWindow>), kCaught);
  EXPECT_GT(worst_error(made<WindowShortByOne>), kCaught);
  EXPECT_GT(worst_error(made<AllowsAnything>), kCaught);
  EXPECT_GT(worst_error(made<AllowsWhatIsCutOff>), kCaught);
  EXPECT_GT(
      worst_error([](const FlyLimits&) { return make_verification("exact", "exact").acceptance; }),
      kCaught);
}

std::vector<std::shared_ptr<const TreeShape>> shapes() {
  return {chain_shape(4),
          std::make_shared<FixedShape>(std::vector<int>{3, 2, 1}, Siblings::without_replacement),
          std::make_shared<FixedShape>(std::vector<int>{2, 2, 2}, Siblings::top_ranks)};
}

// If no mismatch can be kept, it is the exact rule draw for draw, on trees as well.
TEST(Fly, IsTheExactRuleWhereNoMismatchCanStand) {
  const Verification exact = make_verification("exact", "exact");
  int n_others = 0;
  for (const auto& shape : shapes()) {
    for (const auto& [name, sampling] : transforms()) {
      for (std::uint64_t seed = 1; seed <= 8; ++seed) {
        RulePair pair(static_cast<std::uint32_t>(seed), 5);
        const WrittenText expected =
            write_text(pair, *exact.acceptance, shape, sampling, kPrompt, seed);
        for (const char* spec : {"fly:entropy=100", "fly:entropy=0,window=4", "fly"}) {
          const WrittenText got = write_text(pair, *make_verification(spec, "exact").acceptance,
                                             shape, sampling, kPrompt, seed);
          EXPECT_EQ(got, expected) << spec << ", " << name;
          EXPECT_EQ(got.cost.kl, 0);
          EXPECT_EQ(got.cost.total_variation, 0);
        }
        const WrittenText loose =
            write_text(pair, *make_verification("fly:entropy=0,window=1", "exact").acceptance,
                       shape, sampling, kPrompt, seed);
        n_others += loose == expected ? 0 : 1;
      }
    }
  }
  EXPECT_GT(n_others, 20);
}

// At temperature 0 rule_tv counts the tokens that are not the target's; with a window of 1, no two
// of them are adjacent.
TEST(Fly, AtTemperatureZeroCostsAreTheTokensThatAreNotTheTargets) {
  const Verification verification = make_verification("fly:entropy=0,window=1", "exact");
  int n_mismatches = 0;
  for (const auto& shape : shapes()) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      RulePair pair(static_cast<std::uint32_t>(seed), 5);
      const WrittenText text =
          write_text(pair, *verification.acceptance, shape, {.temperature = 0}, kPrompt, seed);
      const Transform transform({.temperature = 0}, 5);
      int n = 0;
      bool last_was_one = false;
      for (std::size_t at = 2; at < text.tokens.size(); ++at) {
        Distribution target;
        transform.distribution(
            pair.target.logits({text.tokens.begin(), text.tokens.begin() + static_cast<long>(at)}),
            target);
        const bool is_one = target.prob(text.tokens[at]) == 0;
        EXPECT_FALSE(is_one && last_was_one);
        n += is_one ? 1 : 0;
        last_was_one = is_one;
      }
      EXPECT_EQ(text.cost.total_variation, n);
      EXPECT_EQ(std::isinf(text.cost.kl), n > 0);
      n_mismatches += n;
    }
  }
  EXPECT_GT(n_mismatches, 50);
}

// On a tree, the first sibling with a complete window is accepted.
TEST(Fly, TakesTheFirstSiblingWithAWholeWindow) {
  struct TreeViews final : test::FixedViews {
    std::vector<Distribution> targets, raw;
    const Distribution& target(int node) override {
      return targets[static_cast<std::size_t>(node)];
    }
    const Distribution& raw_target(int node) override {
      return raw[static_cast<std::size_t>(node)];
    }
  };
  DraftTree tree;
  tree.reset(0, 1);
  tree.add_child(0, 1, kPointMass);  // 1: no target token follows
  tree.add_child(0, 2, kPointMass);  // 2: one follows
  tree.add_child(0, 3, kPointMass);  // 3: two follow
  tree.add_child(1, 0, kPointMass);
  tree.add_child(2, 4, kPointMass);
  tree.add_child(3, 4, kPointMass);
  tree.add_child(6, 4, kPointMass);
  TreeViews views;
  views.targets.assign(8, Distribution::point_mass(4));
  views.targets[0] = Distribution::point_mass(0);
  views.raw.assign(8, Distribution::dense(std::vector<double>(5, 0.2)));
  const auto path_with = [&](int window) {
    CounterChance chance(1);
    Verdict verdict;
    Fly<FlySteps>({.window = window}).verify(tree, views, chance, verdict);
    EXPECT_EQ(verdict.costs.size(), verdict.path.size() + 1);
    return verdict.path;
  };
  EXPECT_EQ(path_with(1), (std::vector<int>{2, 5}));
  EXPECT_EQ(path_with(2), (std::vector<int>{3, 6, 7}));
  EXPECT_EQ(path_with(3), (std::vector<int>{}));
  views.raw[0] = Distribution::point_mass(0);  // certain of another token
  EXPECT_EQ(path_with(1), (std::vector<int>{}));
  views.raw[0] = Distribution::dense(std::vector<double>{0.5, 0.25, 0, 0.25, 0});
  EXPECT_EQ(path_with(1), (std::vector<int>{3, 6, 7}));  // 2 is excluded; after the window, exact
}

}  // namespace
}  // namespace outrider
