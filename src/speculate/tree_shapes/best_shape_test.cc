// SPDX-License-Identifier: Apache-2.0
// Compares best-first trees with the sorted list of all paths, for any number of nodes expanded per
// step.
#include "speculate/tree_shapes/best_shape.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "base/elementary.h"
#include "sampling/counter_chance.h"
#include "speculate/tree_shapes/tree_growth.h"
#include "tests/support/models/table_model.h"

namespace outrider {
namespace {

constexpr int kVocabulary = 5;
constexpr int kDepth = 4;
using Path = std::vector<TokenId>;
using Logits = std::function<std::vector<float>(const Path&)>;
// The logarithm of a factor on everything that follows a path.
using Trust = std::function<double(const Path&)>;

struct Grown {
  std::vector<Path> paths;  // of the nodes, in the order of the paths
  int n_expanded = 0;
  int n_steps = 0;
};

class Drafting {
 public:
  Drafting(double temperature, Logits logits, Trust trust = {}, int vocabulary = kVocabulary)
      : transform_({.temperature = temperature}, vocabulary),
        vocabulary_(vocabulary),
        logits_(std::move(logits)),
        trust_(std::move(trust)) {}

  // same_at_depth: as in TreeGrowth::expand().
  Grown grow(int n_nodes, int depth, bool mixes_levels, int budget = 1000,
             bool same_at_depth = false) {
    const BestShape shape({.nodes = n_nodes, .depth = depth});
    CounterChance chance(1);
    const std::vector<TokenId> text = {0};
    TokenHistory history;
    history.add_prompt(text);
    const Context context{.tokens = text, .history = &history, .transform = &transform_};
    DraftTree tree;
    tree.reset(0, 1);
    const DraftJob job{.context = &context,
                       .budget = {.depth = 100, .n_nodes = budget},
                       .shape = &shape,
                       .chance = &chance,
                       .tree = &tree};
    TreeGrowth growth;
    growth.start(job, 100, mixes_levels);
    Grown grown;
    for (; !growth.frontier().empty(); growth.next_level(), ++grown.n_steps) {
      for (const int node : growth.frontier()) {
        Path path;
        tree.path_tokens(node, path);
        EXPECT_LT(tree.node(node).depth, depth);
        if (!mixes_levels) {
          EXPECT_EQ(tree.node(node).depth, grown.n_steps);
        }
        std::vector<float> row = logits_(path);
        growth.expand(node, LogitRow(row), trust_ ? trust_(path) : 0, same_at_depth);
        ++grown.n_expanded;
      }
    }
    for (int node = 1; node < tree.n_nodes(); ++node) {
      EXPECT_EQ(tree.node(node).proposal, kPointMass);
      tree.path_tokens(node, grown.paths.emplace_back());
    }
    std::sort(grown.paths.begin(), grown.paths.end());
    return grown;
  }

  // The n likeliest paths of up to `depth` tokens; ties go to the shorter path, then to lower ids.
  std::vector<Path> likeliest(std::size_t n, int depth) {
    struct Candidate {
      double log_prob;
      Path path;
    };
    std::vector<Candidate> all;
    std::vector<Candidate> level = {{0, {}}};
    for (int d = 1; d <= depth; ++d) {
      std::vector<Candidate> next;
      for (const Candidate& parent : level) {
        Distribution dist;
        if (transform_.greedy()) {
          transform_.raw_distribution(logits_(parent.path), dist);
        } else {
          transform_.distribution(logits_(parent.path), dist);
        }
        for (TokenId token = 0; token < vocabulary_; ++token) {
          // A table gives some tokens no probability.
          if (!(dist.prob(token) > 0)) continue;
          // A table gives some tokens no probability.
          if (!(dist.prob(token) > 0)) continue;
          Path path = parent.path;
          path.push_back(token);
          const double trust = trust_ ? trust_(parent.path) : 0;
          next.push_back(
              {parent.log_prob + std::min(0.0, portable_log(dist.prob(token)) + trust), path});
        }
      }
      all.insert(all.end(), next.begin(), next.end());
      level = std::move(next);
    }
    std::sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) {
      if (a.log_prob != b.log_prob) return a.log_prob > b.log_prob;
      if (a.path.size() != b.path.size()) return a.path.size() < b.path.size();
      return a.path < b.path;
    });
    all.resize(std::min(all.size(), n));
    std::vector<Path> paths;
    for (Candidate& candidate : all) paths.push_back(std::move(candidate.path));
    std::sort(paths.begin(), paths.end());
    return paths;
  }

 private:
  Transform transform_;
  int vocabulary_;
  Logits logits_;
  Trust trust_;
};

// Three kinds of logits: those of a small model; the same ones for all nodes of a level; all equal.
// The first two are so coarse that many paths tie.
Logits logits_of(int kind, std::uint32_t table) {
  return [kind, table](const Path& path) {
    static constexpr float kCoarse = 2;
    Path prefix = {0};
    if (kind % 2 == 0) {
      prefix.insert(prefix.end(), path.begin(), path.end());
    } else {
      prefix.insert(prefix.end(), path.size(), 1);
    }
    test::TableModel model(kVocabulary, table);
    std::vector<float> logits = model.logits(prefix);
    for (float& logit : logits) {
      if (kind >= 2) logit = std::round(logit / kCoarse);
      if (kind >= 4) logit = 0;
    }
    return logits;
  };
}

TEST(BestShape, IsTheLikeliestOfAllPaths) {
  for (int kind = 0; kind <= 4; ++kind) {
    for (std::uint32_t table = 1; table <= 6; ++table) {
      for (const double temperature : {0.0, 0.7}) {
        Drafting drafting(temperature, logits_of(kind, table));
        for (const int n_nodes : {1, 2, 3, 7, 12, 13, 40}) {
          for (const int depth : {1, 2, kDepth}) {
            const std::vector<Path> expected =
                drafting.likeliest(static_cast<std::size_t>(n_nodes), depth);
            for (const bool mixes_levels : {true, false}) {
              for (const bool same_at_depth : {false, true}) {
                if (same_at_depth && kind % 2 == 0) continue;
                EXPECT_EQ(drafting.grow(n_nodes, depth, mixes_levels, 1000, same_at_depth).paths,
                          expected)
                    << "distributions " << kind << " of " << table << ", temperature "
                    << temperature << ", " << n_nodes << " nodes of depth " << depth << ", "
                    << same_at_depth;
              }
            }
          }
        }
      }
    }
  }
}

// The trust in a path, beside its probability, is a factor on everything that follows it.
TEST(BestShape, GoesByTrustAsWell) {
  const auto trust = [](const Path& path) {
    return portable_log(path.empty() ? 0.9 : 0.2 + 0.15 * static_cast<double>(path.back()));
  };
  int n_other = 0;
  for (std::uint32_t table = 1; table <= 6; ++table) {
    Drafting trusting(0.7, logits_of(0, table));
    Drafting drafting(0.7, logits_of(0, table), trust);
    for (const bool mixes_levels : {true, false}) {
      const std::vector<Path> grown = drafting.grow(12, kDepth, mixes_levels).paths;
      EXPECT_EQ(grown, drafting.likeliest(12, kDepth));
      if (grown != trusting.likeliest(12, kDepth)) ++n_other;
    }
  }
  EXPECT_GE(n_other, 6);
}

TEST(BestShape, ABudgetLeavesTheLikeliest) {
  Drafting drafting(0.7, logits_of(0, 2));
  for (const int budget : {0, 1, 5, 12}) {
    EXPECT_EQ(drafting.grow(12, kDepth, true, budget).paths,
              drafting.likeliest(static_cast<std::size_t>(budget), kDepth));
  }
}

// Distributions that make a step expand many nodes in vain: one token is nearly certain at each
// position. And uniform ones, for which all nodes of the tree are of one level.
TEST(BestShape, ExpandsFewNodes) {
  constexpr int kWide = 300;
  const auto peaked = [](const Path& path) {
    std::vector<float> logits(kWide, 0);
    logits[path.size() + 7] = 9;
    return logits;
  };
  const auto flat = [](const Path&) { return std::vector<float>(kWide, 1); };
  Drafting one(1, peaked, {}, kWide);
  Drafting other(1, flat, {}, kWide);
  for (const int n_nodes : {4, 60, kMaxDraftNodes}) {
    const Grown deep = one.grow(n_nodes, kDeepestDraft, true);
    EXPECT_EQ(deep.paths.size(), static_cast<std::size_t>(n_nodes));
    EXPECT_LE(deep.n_expanded, kMaxDraftNodes);
    // The tree contains the chain of likely tokens.
    Path chain;
    for (int d = 0; d < std::min(n_nodes, kDeepestDraft); ++d) chain.push_back(d + 7);
    EXPECT_TRUE(std::binary_search(deep.paths.begin(), deep.paths.end(), chain));
    const Grown broad = other.grow(n_nodes, kDeepestDraft, true);
    EXPECT_LE(broad.n_expanded, kMaxDraftNodes);
    for (const Path& path : broad.paths) EXPECT_EQ(path.size(), 1U);
    const Grown by_levels = one.grow(n_nodes, 5, false);
    EXPECT_LE(by_levels.n_expanded, kMaxDraftNodes);
    chain.resize(std::min(chain.size(), std::size_t{5}));
    EXPECT_TRUE(std::binary_search(by_levels.paths.begin(), by_levels.paths.end(), chain));
  }
  EXPECT_EQ(one.grow(4, 3, true).n_steps, 3);
}

}  // namespace
}  // namespace outrider
