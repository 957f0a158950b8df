// SPDX-License-Identifier: Apache-2.0
// Promise 1 by enumeration: every outcome of drafter and verifier runs through the production loop,
// and the joint distribution of the emitted tokens must be the target's to 1e-12. Then one step of
// verification is broken at a time, and the same enumeration must notice.
#include "tests/support/proofs/exactness.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "speculate/acceptances/block.h"
#include "speculate/acceptances/coupled.h"
#include "speculate/acceptances/multi_round.h"
#include "speculate/drafters/model_drafter.h"
#include "tests/support/proofs/enumerated_process.h"

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

struct Pair {
  explicit Pair(std::uint32_t seed, int vocabulary = 3)
      : target(vocabulary, 2 * seed),
        drafter(std::make_unique<TableModel>(vocabulary, 2 * seed + 1), vocabulary) {}
  TableModel target;
  ModelDrafter drafter;
};

Trial trial_of(Pair& pair, const Acceptance& acceptance, int length, const StopRule* stop,
               const SamplingParams& sampling) {
  return {.target = &pair.target,
          .drafter = &pair.drafter,
          .acceptance = &acceptance,
          .draft_length = length,
          .stop = stop,
          .sampling = sampling,
          .prompt = {0, 2},
          .n_tokens = 4};
}

// The largest error over seeds, transforms and chain lengths.
double worst_distance(const Acceptance& acceptance, const StopRule* stop) {
  double worst = 0;
  for (std::uint32_t seed = 1; seed <= 4; ++seed) {
    for (const auto& [name, sampling] : transforms()) {
      for (int length = 1; length <= 3; ++length) {
        Pair pair(seed);
        const Trial trial = trial_of(pair, acceptance, length, stop, sampling);
        const Enumerated enumerated = enumerate(trial);
        EXPECT_NEAR(enumerated.weight, 1.0, kExact) << name;
        worst = std::max(worst, distance(enumerated.dist, target_distribution(trial)));
      }
    }
  }
  return worst;
}

const std::shared_ptr<const Rule> kRule = std::make_shared<ExactRule>();

TEST(Exactness, MultiRoundChains) {
  EXPECT_LT(worst_distance(*make_multi_round(kRule), nullptr), kExact);
}
TEST(Exactness, MultiRoundChainsOfValueDependentLength) {
  const ValueStop stop;
  EXPECT_LT(worst_distance(*make_multi_round(kRule), &stop), kExact);
}
TEST(Exactness, BlockChains) { EXPECT_LT(worst_distance(*make_block(kRule), nullptr), kExact); }
TEST(Exactness, BlockChainsOfValueDependentLength) {
  const ValueStop stop;
  EXPECT_LT(worst_distance(*make_block(kRule), &stop), kExact);
}
TEST(Exactness, CoupledChains) { EXPECT_LT(worst_distance(*make_coupled(kRule), nullptr), kExact); }
TEST(Exactness, CoupledChainsOfValueDependentLength) {
  const ValueStop stop;
  EXPECT_LT(worst_distance(*make_coupled(kRule), &stop), kExact);
}

TEST(Exactness, FourTokenVocabulary) {
  for (const auto& acceptance : {make_multi_round(kRule), make_block(kRule), make_coupled(kRule)}) {
    for (std::uint32_t seed = 11; seed <= 12; ++seed) {
      Pair pair(seed, 4);
      const Trial trial = trial_of(pair, *acceptance, 3, nullptr, {.temperature = 1});
      EXPECT_LT(distance(enumerate(trial).dist, target_distribution(trial)), kExact)
          << acceptance->name();
    }
  }
}

// If the drafter is the target, no token is rejected.
TEST(Exactness, TargetAsItsOwnDrafterIsAlwaysAccepted) {
  for (const auto& acceptance : {make_multi_round(kRule), make_block(kRule), make_coupled(kRule)}) {
    TableModel target(3, 8);
    ModelDrafter drafter(std::make_unique<TableModel>(3, 8), 3);
    const Trial trial{.target = &target,
                      .drafter = &drafter,
                      .acceptance = acceptance.get(),
                      .draft_length = 3,
                      .sampling = {.temperature = 1},
                      .n_tokens = 4};
    EXPECT_NEAR(enumerate(trial).accepted_in_first_round, 3, kExact) << acceptance->name();
  }
}

// Sun et al. 2024, theorem 2: block verification never accepts fewer tokens in expectation.
// Somewhere it must also accept more.
TEST(Exactness, BlockAcceptsAtLeastAsManyTokens) {
  double largest_gain = 0;
  for (std::uint32_t seed = 1; seed <= 12; ++seed) {
    for (int length = 1; length <= 3; ++length) {
      Pair pair(seed);
      const auto exact = make_multi_round(kRule);
      const auto block = make_block(kRule);
      const auto accepted = [&](const Acceptance& acceptance) {
        return enumerate(trial_of(pair, acceptance, length, nullptr, {.temperature = 1}))
            .accepted_in_first_round;
      };
      const double gain = accepted(*block) - accepted(*exact);
      EXPECT_GE(gain, -kExact);
      if (length == 1) {
        EXPECT_NEAR(gain, 0, kExact);
      }
      largest_gain = std::max(largest_gain, gain);
    }
  }
  EXPECT_GT(largest_gain, 0.01);
}

// The first drafted token is accepted with probability sum of min(target_prob, draft_prob).
TEST(Exactness, AcceptanceOfOneTokenIsTheOverlap) {
  for (std::uint32_t seed = 1; seed <= 8; ++seed) {
    Pair pair(seed);
    TableModel draft_table(3, 2 * seed + 1);
    const auto exact = make_multi_round(kRule);
    const Trial trial = trial_of(pair, *exact, 1, nullptr, {.temperature = 1});
    const Transform transform(trial.sampling, 3);
    Distribution target_prob;
    Distribution draft_prob;
    transform.distribution(pair.target.logits(trial.prompt), target_prob);
    transform.distribution(draft_table.logits(trial.prompt), draft_prob);
    EXPECT_NEAR(enumerate(trial).accepted_in_first_round, overlap(target_prob, draft_prob), kExact);
  }
}

// --- Siblings ---

// Draws `width` children of the root, and one child of each, from a table's distributions.
class SiblingDrafter : public Drafter {
 public:
  enum class Kind { with_replacement, without_replacement, point_masses };
  SiblingDrafter(Kind kind, int width, std::uint32_t seed)
      : kind_(kind), width_(width), model_(3, seed) {}
  std::string_view name() const override { return "siblings"; }
  DrafterTraits traits() const override {
    return {.has_draft_prob = kind_ != Kind::point_masses, .prefix_determined = true};
  }
  void begin(const Context&) override {}
  void propose(std::span<DraftJob> jobs) override {
    for (DraftJob& job : jobs) {
      if (job.budget.depth == 0) continue;
      draw_children(job, 0, width_);
      if (job.budget.depth == 1) continue;
      for (int child = 1; child <= job.tree->n_drafted() && job.tree->node(child).parent == 0;
           ++child) {
        draw_children(job, child, 1);
      }
    }
  }
  void observe(std::span<const RoundResult>) override {}
  void end(SequenceId) override {}
  std::int64_t n_passes() const override { return 0; }

 protected:
  // A node's children in order; a mutant changes the list.
  struct Child {
    TokenId token;
    int proposal;
    double draft_prob;
  };
  virtual void mutate(std::vector<Child>&) const {}
  virtual bool records_removal() const { return true; }

 private:
  void draw_children(DraftJob& job, int parent, int width) {
    DraftTree& tree = *job.tree;
    std::vector<TokenId> prefix(job.context->tokens.begin(), job.context->tokens.end());
    std::vector<TokenId> path;
    tree.path_tokens(parent, path);
    prefix.insert(prefix.end(), path.begin(), path.end());
    const int dist = tree.add_distribution();
    job.context->transform->distribution(model_.logits(prefix), tree.distribution(dist));
    tree.set_draft_prob(parent, dist);
    Distribution left = tree.distribution(dist);
    std::vector<Child> children;
    for (int child = 0; child < width && !left.ids.empty(); ++child) {
      // Keys number nodes as they are drawn, before any mutation.
      const int ordinal = 100 * parent + tree.n_nodes() + child;
      if (kind_ == Kind::point_masses) {
        const TokenId token = left.argmax();
        children.push_back({token, kPointMass, 0});
        subtract_and_normalise(left, Distribution::point_mass(token));
        if (left.prob(token) > 0) break;  // no other token left
        continue;
      }
      const TokenId token =
          job.chance->categorical(left, {tree.n_committed(), ordinal, Purpose::draft});
      const double draft_prob = tree.distribution(dist).prob(token);
      int proposal = dist;
      if (kind_ == Kind::without_replacement) {
        proposal = tree.add_distribution();
        tree.distribution(proposal) = left;
        Distribution taken = Distribution::point_mass(token);
        subtract_and_normalise(left, taken);
        const bool exhausted = left.prob(token) > 0;
        if (!records_removal()) proposal = dist;
        children.push_back({token, proposal, draft_prob});
        if (exhausted) break;
        continue;
      }
      children.push_back({token, proposal, draft_prob});
    }
    mutate(children);
    for (const Child& child : children) tree.add_child(parent, child.token, child.proposal);
  }

  Kind kind_;
  int width_;
  TableModel model_;
};

class SortedSiblings final : public SiblingDrafter {
 public:
  using SiblingDrafter::SiblingDrafter;
  void mutate(std::vector<Child>& children) const override {
    std::stable_sort(children.begin(), children.end(),
                     [](const Child& a, const Child& b) { return a.draft_prob > b.draft_prob; });
  }
};

class DroppedDuplicates final : public SiblingDrafter {
 public:
  using SiblingDrafter::SiblingDrafter;
  void mutate(std::vector<Child>& children) const override {
    for (std::size_t index = 1; index < children.size();) {
      bool duplicate = false;
      for (std::size_t earlier = 0; earlier < index; ++earlier) {
        duplicate = duplicate || children[earlier].token == children[index].token;
      }
      if (duplicate) {
        children.erase(children.begin() + static_cast<std::ptrdiff_t>(index));
      } else {
        ++index;
      }
    }
  }
};

class SiblingNotRemoved final : public SiblingDrafter {
 public:
  using SiblingDrafter::SiblingDrafter;
  bool records_removal() const override { return false; }
};

template <class SomeDrafter>
double worst_sibling_distance(SiblingDrafter::Kind kind, const Acceptance& acceptance) {
  double worst = 0;
  for (std::uint32_t seed = 1; seed <= 6; ++seed) {
    for (const double temperature : {1.0, 0.6}) {
      TableModel target(3, 2 * seed);
      SomeDrafter drafter(kind, 2, 2 * seed + 1);
      const Trial trial{.target = &target,
                        .drafter = &drafter,
                        .acceptance = &acceptance,
                        .draft_length = 2,
                        .sampling = {.temperature = temperature},
                        .n_tokens = 3};
      const Enumerated enumerated = enumerate(trial);
      EXPECT_NEAR(enumerated.weight, 1.0, kExact);
      worst = std::max(worst, distance(enumerated.dist, target_distribution(trial)));
    }
  }
  return worst;
}

template <class SomeDrafter>
double worst_sibling_distance(SiblingDrafter::Kind kind) {
  return worst_sibling_distance<SomeDrafter>(kind, *make_multi_round(kRule));
}

using Kind = SiblingDrafter::Kind;

TEST(Exactness, SiblingsWithReplacement) {
  EXPECT_LT(worst_sibling_distance<SiblingDrafter>(Kind::with_replacement), kExact);
}
TEST(Exactness, SiblingsWithoutReplacement) {
  EXPECT_LT(worst_sibling_distance<SiblingDrafter>(Kind::without_replacement), kExact);
}
TEST(Exactness, SiblingsAsPointMasses) {
  EXPECT_LT(worst_sibling_distance<SiblingDrafter>(Kind::point_masses), kExact);
}

// --- Mutants: each breaks one step, each must be caught ---

TEST(Mutants, SampledSiblingsSorted) {
  for (const auto& acceptance : {make_multi_round(kRule), make_traversal(kRule)}) {
    EXPECT_GT(worst_sibling_distance<SortedSiblings>(Kind::without_replacement, *acceptance),
              kCaught);
  }
}
TEST(Mutants, DuplicateDropped) {
  for (const auto& acceptance : {make_multi_round(kRule), make_traversal(kRule)}) {
    EXPECT_GT(worst_sibling_distance<DroppedDuplicates>(Kind::with_replacement, *acceptance),
              kCaught);
  }
}
TEST(Mutants, SiblingNotRemoved) {
  for (const auto& acceptance : {make_multi_round(kRule), make_traversal(kRule)}) {
    EXPECT_GT(worst_sibling_distance<SiblingNotRemoved>(Kind::without_replacement, *acceptance),
              kCaught);
  }
}

struct AlwaysAccept : MultiRoundSteps {
  static double accept_prob(double, double) { return 1; }
};
struct ResidualNotClipped : MultiRoundSteps {
  static double reject(Distribution& rule_prob, const Distribution& proposal) {
    double sum = 0;
    for (std::size_t index = 0; index < rule_prob.ids.size(); ++index) {
      double& prob = rule_prob.probs[index];
      prob = std::abs(prob - proposal.prob(rule_prob.ids[index]));
      sum += prob;
    }
    for (double& prob : rule_prob.probs) prob /= sum;
    return sum;
  }
};
struct ResidualNotRenormalised : MultiRoundSteps {
  static double reject(Distribution& rule_prob, const Distribution& proposal) {
    return test::subtract_without_normalising(rule_prob, proposal);
  }
};
// A published tutorial's mistake: after a rejection it samples from the target itself.
struct ReplacementFromTarget : MultiRoundSteps {
  static double reject(Distribution&, const Distribution&) { return 1; }
};
struct BonusSkipsTransform : MultiRoundSteps {
  static void leaf_prob(const Rule&, NodeViews& views, int leaf, Distribution& out) {
    out = views.raw_target(leaf);
  }
};
struct AcceptSharesDraftUniform : MultiRoundSteps {
  static Draw accept_draw(const DraftTree& tree, int child) {
    return {tree.n_committed(), child, Purpose::draft};
  }
};
class RawInsteadOfTransformed final : public Rule {
 public:
  const char* name() const override { return "raw"; }
  void rule_prob(NodeViews& views, int node, Distribution& out) const override {
    out = views.raw_target(node);
  }
};

template <class Steps>
double multi_round_mutant() {
  return worst_distance(MultiRound<Steps>(kRule), nullptr);
}

TEST(Mutants, AlwaysAccept) { EXPECT_GT(multi_round_mutant<AlwaysAccept>(), kCaught); }
TEST(Mutants, ResidualNotClipped) { EXPECT_GT(multi_round_mutant<ResidualNotClipped>(), kCaught); }
TEST(Mutants, ResidualNotRenormalised) {
  EXPECT_GT(multi_round_mutant<ResidualNotRenormalised>(), kCaught);
}
TEST(Mutants, ReplacementFromTarget) {
  EXPECT_GT(multi_round_mutant<ReplacementFromTarget>(), kCaught);
}
TEST(Mutants, BonusSkipsTransform) {
  EXPECT_GT(multi_round_mutant<BonusSkipsTransform>(), kCaught);
}
TEST(Mutants, AcceptSharesDraftUniform) {
  EXPECT_GT(multi_round_mutant<AcceptSharesDraftUniform>(), kCaught);
}
TEST(Mutants, RawAndTransformedSwapped) {
  EXPECT_GT(worst_distance(*make_multi_round(std::make_shared<RawInsteadOfTransformed>()), nullptr),
            kCaught);
}

struct BlockKeyedByPosition : BlockSteps {
  static Draw accept_draw(const DraftTree& tree, int node) {
    return {tree.n_committed() + tree.node(node).depth, 0, Purpose::block};
  }
};
struct BlockSharesDraftUniform : BlockSteps {
  static Draw accept_draw(const DraftTree& tree, int node) {
    return {tree.n_committed(), node, Purpose::draft};
  }
};
struct BlockWeightNotCapped : BlockSteps {
  static double weight(double before, double rule_prob, double proposal_prob) {
    return before * (rule_prob / proposal_prob);
  }
};
struct BlockAcceptsByWeight : BlockSteps {
  static double accept_prob(double, double weight) { return weight; }
};
struct BlockAlwaysAccepts : BlockSteps {
  static double accept_prob(double, double) { return 1; }
};

template <class Steps>
double block_mutant() {
  return worst_distance(Block<Steps>(kRule), nullptr);
}

TEST(Mutants, BlockKeyedByPosition) { EXPECT_GT(block_mutant<BlockKeyedByPosition>(), kCaught); }
TEST(Mutants, BlockSharesDraftUniform) {
  EXPECT_GT(block_mutant<BlockSharesDraftUniform>(), kCaught);
}
TEST(Mutants, BlockWeightNotCapped) { EXPECT_GT(block_mutant<BlockWeightNotCapped>(), kCaught); }
TEST(Mutants, BlockAcceptsByWeight) { EXPECT_GT(block_mutant<BlockAcceptsByWeight>(), kCaught); }
TEST(Mutants, BlockAlwaysAccepts) { EXPECT_GT(block_mutant<BlockAlwaysAccepts>(), kCaught); }

}  // namespace
}  // namespace outrider
