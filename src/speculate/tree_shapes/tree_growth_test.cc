// SPDX-License-Identifier: Apache-2.0
// Drafts grown from made-up logits: what each shape requests, how budgets and stop rules cut it,
// how siblings are proposed.
#include "speculate/tree_shapes/tree_growth.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "sampling/counter_chance.h"
#include "speculate/tree_shapes/dynamic_shape.h"
#include "speculate/tree_shapes/fixed_shape.h"
#include "tests/support/models/table_model.h"

namespace outrider {
namespace {

constexpr int kVocabulary = 12;

// A request and a table as the drafter's model.
class Drafting {
 public:
  explicit Drafting(const SamplingParams& sampling, std::uint32_t table = 1)
      : transform_(sampling, kVocabulary), model_(kVocabulary, table), chance_(7) {
    history_.add_prompt(tokens_);
  }

  // Grows one draft and checks that each node is requested once, parents first.
  const DraftTree& grow(const TreeShape& shape, Budget budget, const StopRule* stop = nullptr,
                        DraftNoise noise = DraftNoise::fresh, int room = 1000) {
    tree_.reset(tokens_.back(), static_cast<std::int64_t>(tokens_.size()));
    const Context context{
        .id = 0, .tokens = tokens_, .history = &history_, .transform = &transform_};
    DraftJob job{.context = &context,
                 .budget = budget,
                 .shape = &shape,
                 .stop = stop,
                 .chance = &chance_,
                 .noise = noise,
                 .tree = &tree_};
    growth_.start(job, room);
    int level = 0;
    std::vector<int> token_of;  // each node that was expanded, -1 for others
    while (!growth_.frontier().empty()) {
      EXPECT_TRUE(std::is_sorted(growth_.frontier().begin(), growth_.frontier().end()));
      for (const int node : growth_.frontier()) {
        EXPECT_EQ(tree_.node(node).depth, level);
        EXPECT_EQ(tree_.node(node).draft_prob, kNoDistribution);
        std::vector<float> row = logits(node);
        growth_.expand(node, LogitRow(row));
        EXPECT_EQ(row, logits(node));  // penalties are removed again
        token_of.resize(static_cast<std::size_t>(node) + 1, -1);
        token_of.back() = tree_.node(node).token;
      }
      growth_.next_level();
      ++level;
    }
    growth_.renumber(token_of);
    EXPECT_EQ(token_of.size(), tree_.nodes().size());
    for (int node = 0; node < tree_.n_nodes(); ++node) {
      const bool expanded = tree_.node(node).draft_prob != kNoDistribution;
      EXPECT_EQ(token_of[static_cast<std::size_t>(node)], expanded ? tree_.node(node).token : -1);
    }
    return tree_;
  }

  const std::vector<float>& logits(int node) {
    std::vector<TokenId> prefix = tokens_;
    std::vector<TokenId> path;
    tree_.path_tokens(node, path);
    prefix.insert(prefix.end(), path.begin(), path.end());
    return model_.logits(prefix);
  }
  const Transform& transform() const { return transform_; }
  CounterChance& chance() { return chance_; }
  std::vector<TokenId> tokens_ = {3, 1, 2};

 private:
  Transform transform_;
  TokenHistory history_;
  test::TableModel model_;
  CounterChance chance_;
  DraftTree tree_;
  TreeGrowth growth_;
};

constexpr Budget kAmple{.depth = 100, .n_nodes = 1000};

std::vector<int> children_of(const DraftTree& tree, int node) {
  std::vector<int> children;
  for (int child = tree.next_child(node, node); child >= 0; child = tree.next_child(node, child)) {
    children.push_back(child);
  }
  return children;
}

TEST(TreeGrowth, FixedShapesHaveTheirNodes) {
  for (const Siblings siblings :
       {Siblings::without_replacement, Siblings::with_replacement, Siblings::top_ranks}) {
    for (const double temperature : {0.0, 1.0}) {
      Drafting drafting({.temperature = temperature}, 30);
      const FixedShape shape(std::vector{2, 2, 1}, siblings);
      const DraftTree& tree = drafting.grow(shape, kAmple);
      EXPECT_EQ(tree.n_drafted(), shape.n_nodes());
      EXPECT_EQ(children_of(tree, 0), (std::vector{1, 2}));
      EXPECT_EQ(children_of(tree, 1), (std::vector{3, 4}));
      EXPECT_EQ(children_of(tree, 2), std::vector{5});
      for (const DraftNode& node : tree.nodes()) {
        EXPECT_EQ(node.draft_prob != kNoDistribution, node.depth < 2);
      }
    }
  }
}

// Under a greedy transform children are the top ranks of the raw distribution, whatever the shape
// says.
TEST(TreeGrowth, GreedyTransformsGiveRanks) {
  for (const SamplingParams& sampling :
       {SamplingParams{.temperature = 0}, SamplingParams{.temperature = 0.8, .top_k = 1}}) {
    for (const Siblings siblings : {Siblings::without_replacement, Siblings::top_ranks}) {
      Drafting drafting(sampling, 4);
      const DraftTree& tree = drafting.grow(FixedShape(std::vector{3, 2, 1}, siblings), kAmple);
      for (int node = 0; node < tree.n_nodes(); ++node) {
        std::vector<TokenId> ranks;
        likeliest_tokens(drafting.logits(node), kVocabulary, ranks);
        const std::vector<int> children = children_of(tree, node);
        for (std::size_t rank = 0; rank < children.size(); ++rank) {
          EXPECT_EQ(tree.node(children[rank]).token, ranks[rank]);
          EXPECT_EQ(tree.node(children[rank]).proposal, kPointMass);
        }
      }
    }
  }
}

TEST(TreeGrowth, RanksUnderTruncationAreThoseThatItLeaves) {
  Drafting drafting({.temperature = 1, .top_k = 2});
  const DraftTree& tree = drafting.grow(FixedShape(std::vector{4}, Siblings::top_ranks), kAmple);
  EXPECT_EQ(tree.n_drafted(), 2);
}

TEST(TreeGrowth, SiblingsWithoutReplacementDifferAndRunOut) {
  Drafting drafting({.temperature = 1, .top_k = 3});
  for (const DraftNoise noise : {DraftNoise::fresh, DraftNoise::coupled}) {
    const DraftTree& tree = drafting.grow(FixedShape(std::vector{9}), kAmple, nullptr, noise);
    ASSERT_EQ(tree.n_drafted(), 3);
    EXPECT_NE(tree.node(1).token, tree.node(2).token);
    EXPECT_NE(tree.node(1).token, tree.node(3).token);
    EXPECT_NE(tree.node(2).token, tree.node(3).token);
  }
}

// Coupled siblings are the best of one race: sorted by log probability plus noise.
TEST(TreeGrowth, CoupledSiblingsAreTheNextInTheRace) {
  for (std::uint32_t table = 1; table <= 20; ++table) {
    Drafting drafting({.temperature = 1}, table);
    const DraftTree& tree =
        drafting.grow(FixedShape(std::vector{4, 2}), kAmple, nullptr, DraftNoise::coupled);
    for (const int node : {0, 1}) {
      const Distribution& dist = tree.distribution(tree.node(node).draft_prob);
      const Draw draw{tree.n_committed() + tree.node(node).depth, 0, Purpose::token};
      std::vector<TokenId> order = dist.ids;
      std::sort(order.begin(), order.end(), [&](TokenId a, TokenId b) {
        return std::log(dist.prob(a)) + drafting.chance().gumbel(draw, a) >
               std::log(dist.prob(b)) + drafting.chance().gumbel(draw, b);
      });
      const std::vector<int> children = children_of(tree, node);
      ASSERT_EQ(children.size(), std::min<std::size_t>(node == 0 ? 4 : 2, order.size()));
      for (std::size_t rank = 0; rank < children.size(); ++rank) {
        EXPECT_EQ(tree.node(children[rank]).token, order[rank]);
      }
    }
  }
}

TEST(TreeGrowth, BudgetsAreKept) {
  Drafting drafting({.temperature = 1}, 30);
  const FixedShape eagle(eagle1_tree());
  const DynamicShape dynamic({.total = 40, .depth = 5, .top_k = 4});
  for (const TreeShape* shape :
       {static_cast<const TreeShape*>(&eagle), static_cast<const TreeShape*>(&dynamic)}) {
    for (const int depth : {0, 1, 2, 5, 9}) {
      for (const int n_nodes : {0, 1, 4, 7, 100}) {
        for (const int room : {0, 2, 9}) {
          const DraftTree& tree = drafting.grow(*shape, {.depth = depth, .n_nodes = n_nodes},
                                                nullptr, DraftNoise::fresh, room);
          EXPECT_LE(tree.n_drafted(), n_nodes);
          for (const DraftNode& node : tree.nodes()) EXPECT_LE(node.depth, std::min(depth, room));
          EXPECT_EQ(tree.n_drafted() > 0, std::min({depth, n_nodes, room}) > 0);
        }
      }
    }
  }
}

class StopAtEvenTokens final : public StopRule {
 public:
  bool stop_after(TokenId token, double raw_prob) const override {
    EXPECT_GE(raw_prob, 0);
    EXPECT_LE(raw_prob, 1);
    return token % 2 == 0;
  }
};

TEST(TreeGrowth, AStoppedNodeStaysAndIsNotExpanded) {
  const StopAtEvenTokens stop;
  for (const double temperature : {0.0, 1.0}) {
    Drafting drafting({.temperature = temperature}, 30);
    const FixedShape fixed(widths_tree(std::vector{3, 3, 3}));
    const DynamicShape dynamic({.total = 30, .depth = 4, .top_k = 4});
    for (const TreeShape* shape :
         {static_cast<const TreeShape*>(&fixed), static_cast<const TreeShape*>(&dynamic)}) {
      const DraftTree& tree = drafting.grow(*shape, kAmple, &stop);
      int n_stopped = 0;
      for (int node = 1; node < tree.n_nodes(); ++node) {
        if (tree.node(node).token % 2 != 0) continue;
        ++n_stopped;
        EXPECT_TRUE(children_of(tree, node).empty());
        EXPECT_EQ(tree.node(node).draft_prob, kNoDistribution);
      }
      EXPECT_GT(n_stopped, 0);
    }
  }
}

// A dynamic tree against its definition, by hand: all nodes of a level by their path's probability,
// the best ones expanded, the best of all kept.
TEST(TreeGrowth, DynamicTreesKeepTheLikeliestPaths) {
  for (std::uint32_t table = 1; table <= 25; ++table) {
    for (const double temperature : {0.0, 0.7}) {
      const DynamicShape::Limits limits{.total = 11, .depth = 3, .top_k = 3};
      Drafting drafting({.temperature = temperature}, table);
      struct Candidate {
        std::vector<TokenId> path;
        double log_prob;
      };
      test::TableModel model(kVocabulary, table);
      std::vector<Candidate> all;
      std::vector<Candidate> level = {{{}, 0.0}};
      for (int depth = 1; depth <= limits.depth; ++depth) {
        std::vector<Candidate> next;
        for (const Candidate& parent : level) {
          std::vector<TokenId> prefix = drafting.tokens_;
          prefix.insert(prefix.end(), parent.path.begin(), parent.path.end());
          Distribution dist;
          const std::vector<float>& logits = model.logits(prefix);
          if (temperature == 0) {
            drafting.transform().raw_distribution(logits, dist);
          } else {
            drafting.transform().distribution(logits, dist);
          }
          std::vector<TokenId> order = dist.ids;
          std::stable_sort(order.begin(), order.end(),
                           [&](TokenId a, TokenId b) { return dist.prob(a) > dist.prob(b); });
          order.resize(std::min<std::size_t>(order.size(), limits.top_k));
          for (const TokenId token : order) {
            std::vector<TokenId> path = parent.path;
            path.push_back(token);
            next.push_back({path, parent.log_prob + std::log(dist.prob(token))});
          }
        }
        all.insert(all.end(), next.begin(), next.end());
        const auto better = [](const Candidate& a, const Candidate& b) {
          return a.log_prob > b.log_prob + 1e-9;
        };
        std::stable_sort(next.begin(), next.end(), better);
        next.resize(std::min<std::size_t>(next.size(), limits.top_k));
        std::sort(next.begin(), next.end(), [&all](const Candidate& a, const Candidate& b) {
          const auto place = [&all](const Candidate& one) {
            return std::find_if(all.begin(), all.end(),
                                [&one](const Candidate& other) { return other.path == one.path; });
          };
          return place(a) < place(b);
        });
        level = next;
      }
      std::stable_sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) {
        return a.log_prob > b.log_prob + 1e-9;
      });
      all.resize(std::min<std::size_t>(all.size(), limits.total));
      std::vector<std::vector<TokenId>> expected;
      for (const Candidate& candidate : all) expected.push_back(candidate.path);
      std::sort(expected.begin(), expected.end());

      const DraftTree& tree = drafting.grow(DynamicShape(limits), kAmple);
      std::vector<std::vector<TokenId>> grown(static_cast<std::size_t>(tree.n_drafted()));
      for (int node = 1; node < tree.n_nodes(); ++node) {
        EXPECT_LT(tree.node(node).parent, node);
        EXPECT_EQ(tree.node(node).proposal, kPointMass);
        tree.path_tokens(node, grown[static_cast<std::size_t>(node) - 1]);
      }
      std::sort(grown.begin(), grown.end());
      EXPECT_EQ(grown, expected) << "table " << table << ", temperature " << temperature;
    }
  }
}

// With equal probabilities everywhere the lowest ordinals win at every step.
TEST(TreeShapes, DynamicTiesGoToTheLowestOrdinal) {
  const DynamicShape shape({.total = 4, .depth = 3, .top_k = 2});
  std::vector<GrowingNode> nodes(1);
  std::vector<int> chosen;
  for (int index = 0; index < 4; ++index) nodes.push_back({.log_prob = -1});
  shape.choose_frontier(nodes, 1, 100, chosen);
  EXPECT_EQ(chosen, (std::vector{1, 2}));
  nodes[1].open = false;
  shape.choose_frontier(nodes, 1, 100, chosen);
  EXPECT_EQ(chosen, (std::vector{2, 3}));
  for (int index = 0; index < 4; ++index) nodes.push_back({.log_prob = -1});
  EXPECT_TRUE(shape.choose_kept(nodes, 100, chosen));
  EXPECT_EQ(chosen, (std::vector{0, 1, 2, 3, 4}));
  EXPECT_TRUE(shape.choose_kept(nodes, 2, chosen));
  EXPECT_EQ(chosen, (std::vector{0, 1, 2}));
}

TEST(TreeShapes, FixedShapes) {
  EXPECT_EQ(widths_tree(std::vector{3, 2}), (std::vector{3, 2, 2, 2}));
  EXPECT_EQ(chain_shape(0)->depth(), 0);
  EXPECT_EQ(chain_shape(4)->depth(), 4);
  EXPECT_TRUE(chain_shape(4)->is_chain());
  EXPECT_EQ(FixedShape(eagle1_tree()).n_nodes(), 25);
  EXPECT_EQ(FixedShape(medusa_tree()).n_nodes(), 63);
  // A limit on nodes drops the last places.
  const FixedShape shape(std::vector{2, 2, 1});
  EXPECT_EQ(shape.children({.place = 0}, 1).count, 1);
  EXPECT_EQ(shape.children({.place = 1}, 3).count, 1);
  EXPECT_EQ(shape.children({.place = 2}, 4).count, 0);
  EXPECT_EQ(shape.children({.place = 2}, 5).count, 1);
}

}  // namespace
}  // namespace outrider
