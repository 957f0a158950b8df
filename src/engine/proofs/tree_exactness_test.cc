// SPDX-License-Identifier: Apache-2.0
// Promise 1 for trees, by enumeration as in exactness_test.cc: the model drafter's trees of every
// shape, with siblings of every kind, under every verification for trees. Then the gain of
// traversal verification, and mutants.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "speculate/acceptances/multi_round.h"
#include "speculate/acceptances/traversal.h"
#include "speculate/drafters/model_drafter.h"
#include "speculate/tree_shapes/best_shape.h"
#include "speculate/tree_shapes/dynamic_shape.h"
#include "speculate/tree_shapes/fixed_shape.h"
#include "tests/support/proofs/enumerated_process.h"
#include "tests/support/proofs/exactness.h"
#include "tests/support/proofs/fixed_views.h"

namespace outrider {
namespace {

using test::distance;
using test::enumerate;
using test::Enumerated;
using test::kCaught;
using test::kExact;
using test::TableModel;
using test::target_distribution;
using test::transforms;
using test::Trial;
using test::ValueStop;

const std::shared_ptr<const Rule> kRule = std::make_shared<ExactRule>();

std::shared_ptr<const TreeShape> fixed(const std::vector<int>& n_children, Siblings siblings) {
  return std::make_shared<FixedShape>(n_children, siblings);
}

// Numbers of children by place. In the last shape only a later sibling has a child.
const std::vector<std::vector<int>> kShapes = {{2},    {3},          {2, 1, 1}, {2, 2, 1},
                                               {1, 2}, {2, 2, 0, 1}, {2, 0, 2}};

struct Pair {
  explicit Pair(std::uint32_t seed, int vocabulary = 3)
      : target(vocabulary, 2 * seed),
        drafter(std::make_unique<TableModel>(vocabulary, 2 * seed + 1), vocabulary) {}
  TableModel target;
  ModelDrafter drafter;
};

// Two tokens deep with all rounds enumerated, or the whole shape with the first round enumerated.
double tree_distance(std::uint32_t seed, const std::shared_ptr<const TreeShape>& shape,
                     const Acceptance& acceptance, const SamplingParams& sampling,
                     const StopRule* stop, bool all_rounds, int vocabulary = 3) {
  Pair pair(seed, vocabulary);
  const Trial trial{.target = &pair.target,
                    .drafter = &pair.drafter,
                    .acceptance = &acceptance,
                    .shape = shape,
                    .stop = stop,
                    .sampling = sampling,
                    .prompt = {0, 2},
                    .n_tokens = all_rounds ? 3 : shape->depth() + 1,
                    .first_round_only = !all_rounds};
  const Enumerated enumerated = enumerate(trial);
  EXPECT_NEAR(enumerated.weight, 1.0, kExact);
  return distance(enumerated.dist, target_distribution(trial));
}

using Maker = std::unique_ptr<Acceptance> (*)(std::shared_ptr<const Rule>);
struct Mode {
  const char* name;
  Maker make;
  Siblings siblings;
};

class TreeExactness : public ::testing::TestWithParam<Mode> {};

TEST_P(TreeExactness, FixedShapes) {
  const auto acceptance = GetParam().make(kRule);
  const ValueStop stop;
  for (const auto& n_children : kShapes) {
    const auto shape = fixed(n_children, GetParam().siblings);
    for (const auto& [name, sampling] : transforms()) {
      for (std::uint32_t seed = 1; seed <= 3; ++seed) {
        for (const StopRule* ending :
             {static_cast<const StopRule*>(nullptr), static_cast<const StopRule*>(&stop)}) {
          EXPECT_LT(tree_distance(seed, shape, *acceptance, sampling, ending, false), kExact)
              << name << ", seed " << seed << ", depth " << shape->depth();
        }
      }
    }
  }
}

TEST_P(TreeExactness, RoundAfterRound) {
  const auto acceptance = GetParam().make(kRule);
  for (const auto& n_children : std::vector<std::vector<int>>{{2}, {2, 1}}) {
    const auto shape = fixed(n_children, GetParam().siblings);
    for (const auto& [name, sampling] : transforms()) {
      EXPECT_LT(tree_distance(5, shape, *acceptance, sampling, nullptr, true), kExact) << name;
    }
  }
}

TEST_P(TreeExactness, FourTokens) {
  const auto acceptance = GetParam().make(kRule);
  const auto shape = fixed({3, 1}, GetParam().siblings);
  EXPECT_LT(tree_distance(11, shape, *acceptance, {.temperature = 1}, nullptr, false, 4), kExact);
}

INSTANTIATE_TEST_SUITE_P(
    , TreeExactness,
    ::testing::Values(Mode{"ExactWithout", make_multi_round, Siblings::without_replacement},
                      Mode{"ExactWith", make_multi_round, Siblings::with_replacement},
                      Mode{"ExactTop", make_multi_round, Siblings::top_ranks},
                      Mode{"TraversalWithout", make_traversal, Siblings::without_replacement},
                      Mode{"TraversalWith", make_traversal, Siblings::with_replacement},
                      Mode{"TraversalTop", make_traversal, Siblings::top_ranks},
                      Mode{"CoupledWithout", make_coupled, Siblings::without_replacement},
                      Mode{"CoupledWith", make_coupled, Siblings::with_replacement},
                      Mode{"CoupledTop", make_coupled, Siblings::top_ranks}),
    [](const auto& info) { return std::string(info.param.name); });

// Point masses need no draws, so whole published trees can be enumerated.
TEST(TreeExactnessOf, TreesOfPointMasses) {
  const ValueStop stop;
  std::vector<std::shared_ptr<const TreeShape>> shapes = {
      std::make_shared<FixedShape>(eagle1_tree().first(9), Siblings::top_ranks),
      std::make_shared<FixedShape>(medusa_tree().first(15), Siblings::top_ranks)};
  for (const int total : {1, 3, 6, 20}) {
    for (const int top_k : {1, 2, 3}) {
      shapes.push_back(std::make_shared<DynamicShape>(
          DynamicShape::Limits{.total = total, .depth = 3, .top_k = top_k}));
    }
    shapes.push_back(std::make_shared<BestShape>(BestShape::Limits{.nodes = total, .depth = 3}));
  }
  for (const auto& acceptance :
       {make_multi_round(kRule), make_traversal(kRule), make_coupled(kRule)}) {
    for (const auto& shape : shapes) {
      for (const auto& [name, sampling] : transforms()) {
        for (const StopRule* ending :
             {static_cast<const StopRule*>(nullptr), static_cast<const StopRule*>(&stop)}) {
          EXPECT_LT(tree_distance(3, shape, *acceptance, sampling, ending, false), kExact)
              << acceptance->name() << " " << name;
          EXPECT_LT(tree_distance(4, shape, *acceptance, sampling, ending, true, 4), kExact)
              << acceptance->name() << " " << name;
        }
      }
    }
  }
}

// Two branches, each continued depending on the other's last token. Which node gets the next child
// may depend on everything drawn, also if one branch is judged to its leaves before the other.
class BranchesThatWatchEachOther final : public TreeShape {
 public:
  int depth() const override { return 3; }
  int n_nodes() const override { return 6; }
  bool is_chain() const override { return false; }
  Siblings siblings() const override { return Siblings::with_replacement; }
  Children children(const GrowingNode& node, int) const override {
    return {.count = node.place == 0 ? 2 : 1, .first_place = 1};
  }
  void choose_frontier(std::span<const GrowingNode> nodes, int, int,
                       std::vector<int>& frontier) const override {
    frontier.clear();
    if (nodes.size() == 1) frontier = {0};
    if (nodes.size() == 3) frontier = {1, 2};
    if (nodes.size() < 5) return;
    if (nodes[4].open) frontier.push_back(3);
    if (nodes[3].open) frontier.push_back(4);
  }
  bool choose_kept(std::span<const GrowingNode>, int, std::vector<int>&) const override {
    return false;
  }
};

TEST(TreeExactnessOf, BranchesThatWatchEachOther) {
  const ValueStop stop;
  const auto shape = std::make_shared<BranchesThatWatchEachOther>();
  for (const auto& acceptance : {make_multi_round(kRule), make_traversal(kRule)}) {
    for (std::uint32_t seed = 1; seed <= 8; ++seed) {
      EXPECT_LT(tree_distance(seed, shape, *acceptance, {.temperature = 1}, &stop, false), kExact);
    }
  }
}

// --- The gain of traversal
// ------------------------------------------------------------------------------------

double accepted(std::uint32_t seed, const Acceptance& acceptance,
                const std::shared_ptr<const TreeShape>& shape, const SamplingParams& sampling,
                int vocabulary) {
  Pair pair(seed, vocabulary);
  const Trial trial{.target = &pair.target,
                    .drafter = &pair.drafter,
                    .acceptance = &acceptance,
                    .shape = shape,
                    .sampling = sampling,
                    .prompt = {0, 2},
                    .n_tokens = shape->depth() + 1,
                    .first_round_only = true};
  return enumerate(trial).accepted_in_first_round;
}

// Accepted tokens of traversal minus those of multi-round, over random pairs.
struct Gains {
  double min = 1e9;
  double max = -1e9;
  double mean = 0;
};
Gains gains(const std::shared_ptr<const TreeShape>& shape, int n_pairs, int vocabulary = 3) {
  const auto exact = make_multi_round(kRule);
  const auto traversal = make_traversal(kRule);
  Gains result;
  for (int seed = 1; seed <= n_pairs; ++seed) {
    const SamplingParams sampling{.temperature = seed % 2 == 0 ? 1.0 : 2.5};
    const double gain =
        accepted(static_cast<std::uint32_t>(seed), *traversal, shape, sampling, vocabulary) -
        accepted(static_cast<std::uint32_t>(seed), *exact, shape, sampling, vocabulary);
    result.min = std::min(result.min, gain);
    result.max = std::max(result.max, gain);
    result.mean += gain / n_pairs;
  }
  return result;
}

const std::vector<std::vector<int>> kLargerSubtreesFirst = {{1, 1},    {2, 1, 1}, {2, 2, 1},
                                                            {2, 1, 0}, {1, 2},    {3, 1, 1}};

// With replacement this is a theorem (docs/drafters.md).
TEST(TraversalGain, WithReplacementNeverNegativeWhereEarlierSiblingsHaveTheLargerSubtrees) {
  double largest = 0;
  for (const auto& n_children : kLargerSubtreesFirst) {
    const Gains result = gains(fixed(n_children, Siblings::with_replacement), 60);
    EXPECT_GE(result.min, -kExact) << n_children.size();
    largest = std::max(largest, result.max);
  }
  EXPECT_GT(largest, 0.01);
}

// Without replacement it holds on average, and for nearly every pair.
TEST(TraversalGain, WithoutReplacementPositiveOnAverage) {
  for (const auto& n_children : kLargerSubtreesFirst) {
    const Gains result = gains(fixed(n_children, Siblings::without_replacement), 60);
    EXPECT_GT(result.mean, 0.0005) << n_children.size();
  }
}

// The distributions of a hand-made tree: one at the root, one after it, no more.
class TwoDistributions final : public test::FixedViews {
 public:
  TwoDistributions(Distribution root, Distribution next)
      : root_(std::move(root)), next_(std::move(next)) {}
  const Distribution& target(int node) override { return node == 0 ? root_ : next_; }

 private:
  Distribution root_;
  Distribution next_;
};

// ... but not for every pair. After an only child of weight 0.57, traversal accepts two siblings
// drawn without replacement a little less often than multi-round does. If the first sibling is
// likely for the drafter but not for the target, the second is nearly certain to be the target's
// favourite. This is worth less, the more of the first sibling's rejections fall on other tokens,
// as they do for small weights.
TEST(TraversalGain, WithoutReplacementCanBeNegative) {
  const Distribution draft = Distribution::dense(std::vector{0.0575, 0.8405, 0.0004, 0.1016});
  const Distribution target = Distribution::dense(std::vector{0.0657, 0.0121, 0.3047, 0.6175});
  const auto expected = [&](const Acceptance& acceptance, Replacement replacement) {
    test::EnumeratingChance chance;
    double n_accepted = 0;
    chance.for_each_path([&] {
      TwoDistributions views(Distribution::dense(std::vector{0.5718, 0.4282}), target);
      DraftTree tree;
      tree.reset(0, 1);
      tree.add_child(0, 0, kPointMass);
      const int dist = tree.add_distribution();
      tree.distribution(dist) = draft;
      for (int ordinal = 2; ordinal < 4; ++ordinal) {
        Distribution storage;
        const Distribution* left = replacement == Replacement::without
                                       ? tree.remaining_prob(1, dist, storage)
                                       : &tree.distribution(dist);
        tree.add_child(1, chance.categorical(*left, {1, ordinal, Purpose::draft}), dist,
                       replacement);
      }
      Verdict verdict;
      acceptance.verify(tree, views, chance, verdict);
      n_accepted += chance.weight() * static_cast<double>(verdict.path.size());
    });
    return n_accepted;
  };
  const auto exact = make_multi_round(kRule);
  const auto traversal = make_traversal(kRule);
  EXPECT_LT(expected(*traversal, Replacement::without),
            expected(*exact, Replacement::without) - 0.002);
  EXPECT_GT(expected(*traversal, Replacement::with), expected(*exact, Replacement::with) + 0.02);
}

// On point masses both accept each path with the target's probability of it.
TEST(TraversalGain, NoneOnPointMasses) {
  for (const auto& n_children : kShapes) {
    const Gains result = gains(fixed(n_children, Siblings::top_ranks), 20);
    EXPECT_NEAR(result.min, 0, kExact);
    EXPECT_NEAR(result.max, 0, kExact);
  }
}

// The condition is needed: if only a later sibling is continued, traversal can lose.
TEST(TraversalGain, CanBeNegativeWhereALaterSiblingHasTheLargerSubtree) {
  EXPECT_LT(gains(fixed({1, 2, 0, 1, 1}, Siblings::with_replacement), 60).min, -1e-4);
}

// Judges a chain like block verification, draw for draw.
TEST(Traversal, IsBlockVerificationOnChains) {
  const auto block = make_block(kRule);
  const auto traversal = make_traversal(kRule);
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    const auto chain = chain_shape(3);
    EXPECT_NEAR(accepted(seed, *traversal, chain, {.temperature = 1}, 3),
                accepted(seed, *block, chain, {.temperature = 1}, 3), kExact);
  }
}

// --- Mutants ---

struct KeyedByPosition : TraversalSteps {
  static Draw accept_draw(const DraftTree& tree, int node) {
    return {tree.n_committed() + tree.node(node).depth, 0, Purpose::block};
  }
};
struct SharesDraftUniform : TraversalSteps {
  static Draw accept_draw(const DraftTree& tree, int node) {
    return {tree.n_committed(), node, Purpose::draft};
  }
};
struct WeightNotCapped : TraversalSteps {
  static double weight(double before, double rule_prob, double proposal_prob) {
    return before * (rule_prob / proposal_prob);
  }
};
struct WeightOfTokenAlone : TraversalSteps {
  static double weight(double, double rule_prob, double proposal_prob) {
    return std::min(1.0, rule_prob / proposal_prob);
  }
};
struct ResidualNotScaled : TraversalSteps {
  static double reject(Distribution& rule_prob, double, const Distribution& proposal) {
    return subtract_and_normalise(rule_prob, proposal);
  }
};
struct ResidualNotRenormalised : TraversalSteps {
  static double reject(Distribution& rule_prob, double weight, const Distribution& proposal) {
    return test::subtract_without_normalising(rule_prob, proposal, weight);
  }
};
struct SiblingNotRemoved : TraversalSteps {
  static double reject(Distribution&, double, const Distribution&) { return 1; }
};
struct ParentKeepsItsWeight : TraversalSteps {
  static double accept_prob(double, double weight) { return weight; }
};
struct AlwaysAccepts : TraversalSteps {
  static double weight(double, double, double) { return 1; }
};

template <class Steps>
double mutant(Siblings siblings) {
  double worst = 0;
  const Traversal<Steps> traversal(kRule);
  for (std::uint32_t seed = 1; seed <= 3; ++seed) {
    Pair pair(seed);
    const Trial trial{.target = &pair.target,
                      .drafter = &pair.drafter,
                      .acceptance = &traversal,
                      .shape = fixed({2, 2, 1}, siblings),
                      .sampling = {.temperature = 1},
                      .prompt = {0, 2},
                      .n_tokens = 3,
                      .first_round_only = true};
    worst = std::max(worst, distance(enumerate(trial).dist, target_distribution(trial)));
  }
  return worst;
}

template <class Steps>
void expect_caught() {
  EXPECT_GT(mutant<Steps>(Siblings::without_replacement), kCaught);
  EXPECT_GT(mutant<Steps>(Siblings::with_replacement), kCaught);
}

TEST(TraversalMutants, TheOriginalPasses) {
  for (const Siblings siblings : {Siblings::without_replacement, Siblings::with_replacement}) {
    EXPECT_LT(mutant<TraversalSteps>(siblings), kExact);
  }
}
TEST(TraversalMutants, KeyedByPosition) { expect_caught<KeyedByPosition>(); }
TEST(TraversalMutants, SharesDraftUniform) { expect_caught<SharesDraftUniform>(); }
TEST(TraversalMutants, WeightNotCapped) { expect_caught<WeightNotCapped>(); }
TEST(TraversalMutants, WeightOfTokenAlone) { expect_caught<WeightOfTokenAlone>(); }
TEST(TraversalMutants, ResidualNotScaled) { expect_caught<ResidualNotScaled>(); }
TEST(TraversalMutants, ResidualNotRenormalised) { expect_caught<ResidualNotRenormalised>(); }
TEST(TraversalMutants, SiblingNotRemoved) { expect_caught<SiblingNotRemoved>(); }
TEST(TraversalMutants, ParentKeepsItsWeight) { expect_caught<ParentKeepsItsWeight>(); }
TEST(TraversalMutants, AlwaysAccepts) { expect_caught<AlwaysAccepts>(); }

}  // namespace
}  // namespace outrider
