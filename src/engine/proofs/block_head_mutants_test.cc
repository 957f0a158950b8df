// SPDX-License-Identifier: Apache-2.0
// Drafts of block heads with one fault per mutant, added after the head has drafted: the
// enumeration of the contract suite (drafter_exactness_test.cc) must notice.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/drafting/make_tree_shape.h"
#include "speculate/drafters/forwarding_drafter.h"
#include "speculate/registry/drafter_registry.h"
#include "speculate/rule.h"
#include "speculate/rules/make_rule.h"
#include "tests/support/proofs/drafter_proof.h"
#include "tests/support/proofs/drafter_worlds.h"
#include "tests/support/proofs/exactness.h"

namespace outrider {
namespace {

using test::kCaught;
using test::kExact;
using test::prove;
using test::Proven;
using test::World;

class Spoiling : public ForwardingDrafter {
 public:
  using ForwardingDrafter::ForwardingDrafter;
  void propose(std::span<DraftJob> jobs) override {
    inner().propose(jobs);
    for (const DraftJob& job : jobs) spoil(*job.tree);
  }

 protected:
  virtual void spoil(DraftTree& tree) = 0;

  // Rebuilds the tree from the nodes to keep, as changed.
  static void remake(DraftTree& tree, const std::function<bool(int)>& stays,
                     const std::function<void(int, DraftNode&)>& change) {
    std::vector<DraftNode> nodes(tree.nodes().begin(), tree.nodes().end());
    std::vector<Distribution> dists;
    for (const DraftNode& node : nodes) {
      dists.push_back(node.draft_prob == kNoDistribution ? Distribution()
                                                         : tree.distribution(node.draft_prob));
    }
    tree.reset(nodes.front().token, tree.n_committed());
    std::vector<int> place(nodes.size(), -1);
    place[0] = 0;
    std::vector<int> dist_of(nodes.size(), kNoDistribution);
    for (std::size_t node = 0; node < nodes.size(); ++node) {
      DraftNode& one = nodes[node];
      const bool is_expanded = one.draft_prob != kNoDistribution;
      if (node > 0) {
        if (place[static_cast<std::size_t>(one.parent)] < 0) continue;
        if (!stays(static_cast<int>(node))) continue;
        change(static_cast<int>(node), one);
        const auto parent = static_cast<std::size_t>(one.parent);
        place[node] = tree.add_child(place[parent], one.token,
                                     one.proposal == kPointMass ? kPointMass : dist_of[parent],
                                     one.replacement);
      }
      if (!is_expanded) continue;
      dist_of[node] = tree.add_distribution();
      tree.distribution(dist_of[node]) = dists[node];
      tree.set_draft_prob(place[node], dist_of[node]);
    }
  }
};

// Changes nothing: the control.
class Faithful final : public Spoiling {
 public:
  using Spoiling::Spoiling;
  void spoil(DraftTree& tree) override {
    remake(
        tree, [](int) { return true; }, [](int, DraftNode&) {});
  }
};

// Records siblings drawn without replacement as drawn with it.
class KeepsSiblings final : public Spoiling {
 public:
  using Spoiling::Spoiling;
  void spoil(DraftTree& tree) override {
    remake(
        tree, [](int) { return true; },
        [](int, DraftNode& node) { node.replacement = Replacement::with; });
  }
};

// Records the distribution of a level's first node for all its nodes, as if it did not depend on
// the path.
class ForgetsChains final : public Spoiling {
 public:
  using Spoiling::Spoiling;
  void spoil(DraftTree& tree) override {
    std::vector<int> first;  // distribution by depth
    for (const DraftNode& node : tree.nodes()) {
      if (node.draft_prob == kNoDistribution) continue;
      const auto depth = static_cast<std::size_t>(node.depth);
      if (first.size() <= depth) first.resize(depth + 1, kNoDistribution);
      if (first[depth] == kNoDistribution) {
        first[depth] = node.draft_prob;
      } else {
        tree.distribution(node.draft_prob).assign(tree.distribution(first[depth]));
      }
    }
  }
};

// Drops a drawn token whose probability was too low.
class LooksAhead final : public Spoiling {
 public:
  using Spoiling::Spoiling;
  void spoil(DraftTree& tree) override {
    std::vector<bool> stays;
    for (const DraftNode& node : tree.nodes()) {
      stays.push_back(node.parent < 0 || tree.distribution(node.proposal).prob(node.token) >= 0.35);
    }
    remake(
        tree, [&](int node) { return stays[static_cast<std::size_t>(node)]; },
        [](int, DraftNode&) {});
  }
};

// The largest error over some worlds. The bias leaves few tokens, so that head and target often
// agree: drafts that are never accepted would prove nothing.
template <class Drafting>
double error_of(const std::string& spec, const std::string& tree) {
  const auto rule = std::make_shared<ExactRule>();
  const Verification verification = make_verification("exact", "exact");
  double error = 0;
  for (std::uint32_t seed = 1; seed <= 3; ++seed) {
    World world = test::stored_world(seed);
    const auto head =
        read_drafter(test::DrafterFiles::get().spec({"block", spec.c_str()})).make(world.materials);
    Drafting drafter(*head);
    const Proven proven =
        prove({.world = &world,
               .drafter = &drafter,
               .acceptance = verification.acceptance.get(),
               .rule = rule.get(),
               .shape = make_tree_shape(tree),
               .sampling = test::DrafterFiles::get().few_characters({.temperature = 1, .top_k = 3}),
               .n_tokens = 3,
               .first_round_only = true});
    EXPECT_GT(proven.n_drafted, 0);
    error = std::max(error, proven.error);
  }
  return error;
}

constexpr const char* kHeads[] = {"dflash:{dflash}", "dspark:{dspark}",
                                  "dspark:{dspark},accept=0.3"};
constexpr const char* kTree = "widths:2,1";

TEST(BlockHeadMutants, NoneIsExact) {
  for (const char* head : kHeads) EXPECT_LT(error_of<Faithful>(head, kTree), kExact) << head;
}

TEST(BlockHeadMutants, SiblingsThatAreNotRemoved) {
  for (const char* head : kHeads) EXPECT_GT(error_of<KeepsSiblings>(head, kTree), kCaught) << head;
}

// Without the Markov head, all nodes of a level have one distribution.
TEST(BlockHeadMutants, MarkovDistributionsWithoutTheirChains) {
  EXPECT_LT(error_of<ForgetsChains>("dflash:{dflash}", kTree), kExact);
  EXPECT_GT(error_of<ForgetsChains>("dspark:{dspark}", kTree), kCaught);
}

TEST(BlockHeadMutants, CutsThatLookAhead) {
  for (const char* head : kHeads) {
    EXPECT_GT(error_of<LooksAhead>(head, "chain:length=2"), kCaught) << head;
  }
}

}  // namespace
}  // namespace outrider
