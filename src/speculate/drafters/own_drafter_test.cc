// SPDX-License-Identifier: Apache-2.0
// What a user's own drafter may add to a draft, and what is recorded. The contract suite
// (engine/drafter_*_test.cc) tests distributions and bits of its texts. engine/own_drafter_test.cc
// tests errors in generators and batches.
#include "speculate/drafters/own_drafter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <memory>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "outrider/error.h"
#include "sampling/counter_chance.h"
#include "speculate/drafters/forwarding_drafter.h"
#include "speculate/registry/drafter_registry.h"
#include "speculate/rules/make_rule.h"
#include "speculate/tree_shapes/fixed_shape.h"
#include "speculate/tree_shapes/open_shape.h"
#include "tests/support/proofs/drafter_proof.h"
#include "tests/support/proofs/exactness.h"

namespace outrider {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kVocabulary = 10;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

using Propose = std::function<void(const OwnText&, OwnDraft&)>;

class Proposes : public OwnDrafter {
 public:
  explicit Proposes(Propose propose) : propose_(std::move(propose)) {}
  void begin(const OwnText& text) override { begun.push_back(text.id); }
  void propose(const OwnText& text, OwnDraft& draft) override { propose_(text, draft); }
  void observe(const OwnText& text, std::span<const int> accepted) override {
    observed.emplace_back(text.id, std::vector<int>(accepted.begin(), accepted.end()));
  }
  void end(std::int64_t id) noexcept override { ended.push_back(id); }

  std::vector<std::int64_t> begun;
  std::vector<std::pair<std::int64_t, std::vector<int>>> observed;
  std::vector<std::int64_t> ended;

 private:
  Propose propose_;
};

// One job of one text at a time.
class Job {
 public:
  explicit Job(double temperature = 1, int depth = 3, int n_nodes = 5)
      : transform_({.temperature = temperature}, kVocabulary), shape_(depth, n_nodes) {
    context_ = {.id = 4, .tokens = tokens_, .history = &history_, .transform = &transform_};
    tree_.reset(tokens_.back(), static_cast<std::int64_t>(tokens_.size()));
    job_ = {.context = &context_,
            .budget = {.depth = depth, .n_nodes = n_nodes},
            .shape = &shape_,
            .chance = &chance_,
            .tree = &tree_};
  }
  DraftJob& job() { return job_; }
  DraftTree& tree() { return tree_; }
  const Context& context() const { return context_; }

 private:
  std::vector<TokenId> tokens_ = {1, 2, 3};
  TokenHistory history_;
  Transform transform_;
  OpenShape shape_;
  CounterChance chance_{9};
  DraftTree tree_;
  Context context_;
  DraftJob job_;
};

// The error's message when these calls draft; empty if there is none.
std::string refusal_of(Job& job, const Propose& propose) {
  OwnDrafterAdapter adapter(std::make_shared<Proposes>(propose), kVocabulary);
  adapter.begin(job.context());
  adapter.propose({&job.job(), 1});
  const std::exception_ptr failure = adapter.failure(job.context().id);
  if (!failure) return {};
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    return error.what();
  }
}
std::string refusal_of(const Propose& propose) {
  Job job;
  return refusal_of(job, propose);
}

const std::vector<TokenId> kIds = {7, 2, 5};
const std::vector<double> kProbs = {0.5, 0.3, 0.1};  // the sum is 0.9, and each is divided by it

TEST(OwnDraft, AddsAChainAndATree) {
  Job job;
  EXPECT_EQ(refusal_of(job,
                       [](const OwnText& text, OwnDraft& draft) {
                         EXPECT_THAT(text.tokens, ElementsAre(1, 2, 3));
                         EXPECT_EQ(draft.max_depth(), 3);
                         EXPECT_EQ(draft.max_nodes(), 5);
                         EXPECT_EQ(draft.vocabulary_size(), kVocabulary);
                         EXPECT_FALSE(draft.is_chain());
                         EXPECT_EQ(draft.add(-1, 4), 0);
                         EXPECT_EQ(draft.add(0, 5), 1);
                         EXPECT_EQ(draft.add(-1, 6), 2);
                         EXPECT_EQ(draft.add(2, 0), 3);
                         EXPECT_EQ(draft.n_nodes(), 4);
                       }),
            "");
  std::vector<std::pair<TokenId, int>> nodes;
  for (const DraftNode& node : job.tree().nodes()) nodes.emplace_back(node.token, node.parent);
  EXPECT_THAT(nodes, ElementsAre(std::pair{3, -1}, std::pair{4, 0}, std::pair{5, 1},
                                 std::pair{6, 0}, std::pair{0, 3}));
  for (const DraftNode& node : job.tree().nodes()) EXPECT_EQ(node.proposal, kPointMass);
}

TEST(OwnDraft, RefusesWhatIsNoDraft) {
  struct Bad {
    Propose propose;
    const char* message;
  };
  const TokenId id = 3;
  const auto dist = [](std::vector<TokenId> ids, std::vector<double> probs, TokenId token = 7) {
    return [ids, probs, token](const OwnText&, OwnDraft& draft) {
      draft.add(-1, token, {.ids = ids, .probs = probs});
    };
  };
  const std::vector<Bad> bad = {
      {[](auto&, OwnDraft& draft) { draft.add(-1, kVocabulary); }, "token ids below 10, got 10"},
      {[](auto&, OwnDraft& draft) { draft.add(-1, -1); }, "token ids below 10, got -1"},
      {[](auto&, OwnDraft& draft) { draft.add(0, 1); }, "a parent before it, from -1 to -1, got 0"},
      {[](auto&, OwnDraft& draft) { draft.add(-2, 1); }, "got -2"},
      {[](auto&, OwnDraft& draft) { draft.add(draft.add(-1, 1) + 1, 1); },
       "[own drafter] node 1: expected a parent before it, from -1 to 0, got 1"},
      {[](auto&, OwnDraft& draft) {
         for (int n = 0; n < 6; ++n) draft.add(-1, 1);
       },
       "at most 5 tokens (max_nodes), got one more"},
      {[](auto&, OwnDraft& draft) {
         for (int n = 0; n < 4; ++n) draft.add(n - 1, 1);
       },
       "a depth of at most 3 (max_depth), got 4"},
      {dist({7, 10}, {0.5, 0.5}), "distribution: expected token ids below 10, got 10"},
      {dist({7, -1}, {0.5, 0.5}), "distribution: expected token ids below 10, got -1"},
      {dist({7, 2}, {0.5}), "as many probabilities as ids, 2, got 1"},
      {dist({7, 2}, {0.5, kNan}), "finite and not negative, got nan for token 2"},
      {dist({7, 2}, {kInfinity, 0.5}), "finite and not negative, got inf for token 7"},
      {dist({7, 2}, {0.5, -0.1}), "got -0.1 for token 2"},
      {dist({7, 2}, {0.7, 0.4}), "a sum above 0 and at most 1, got 1.1"},
      {dist({7, 2}, {0, 0}), "a sum above 0 and at most 1, got 0"},
      {dist({}, {}), "a sum above 0 and at most 1, got 0"},
      {dist({7, 2, 7}, {0.3, 0.3, 0.3}), "each token once, got token 7 twice"},
      {dist({7, 2}, {0, 0.5}), "a probability above 0 for the token 7 that was drawn, got 0"},
      {dist({6, 2}, {0.5, 0.5}), "a probability above 0 for the token 7"},
      {[](auto&, OwnDraft& draft) { draft.draw(3, {.ids = kIds, .probs = kProbs}); },
       "a parent before it"},
      {[id](auto&, OwnDraft& draft) {
         draft.draw(-1, {.ids = {&id, 1}, .probs = {}});
       },
       "as many probabilities as ids"},
      {[](auto&, OwnDraft&) { throw std::runtime_error("of its own"); }, "of its own"}};
  for (const Bad& one : bad) EXPECT_THAT(refusal_of(one.propose), HasSubstr(one.message));
}

// A refused node leaves the draft unchanged: the drafter may catch the error and continue.
TEST(OwnDraft, IsAsItWasBehindARefusal) {
  Job job;
  EXPECT_EQ(refusal_of(job,
                       [](auto&, OwnDraft& draft) {
                         draft.add(-1, 1);
                         EXPECT_THROW(draft.add(5, 1), Error);
                         EXPECT_THROW(draft.add(0, 99), Error);
                         EXPECT_THROW(draft.draw(0, {.ids = kIds, .probs = {}}), Error);
                         EXPECT_EQ(draft.n_nodes(), 1);
                         draft.add(0, 2);
                       }),
            "");
  EXPECT_EQ(job.tree().n_drafted(), 2);
}

TEST(OwnDraft, OfAChainIsAChain) {
  Job job;
  const auto chain = chain_shape(3);
  job.job().shape = chain.get();
  EXPECT_EQ(refusal_of(job,
                       [](auto&, OwnDraft& draft) {
                         EXPECT_TRUE(draft.is_chain());
                         EXPECT_EQ(draft.max_nodes(), 3);
                         draft.add(-1, 1);
                         EXPECT_THROW(draft.add(-1, 2), Error);
                         draft.add(0, 2);
                       }),
            "");
}

// Is not asked at all without a budget.
TEST(OwnDraft, IsNotAskedForWithoutRoom) {
  Job job(1, 0, 0);
  EXPECT_EQ(refusal_of(job, [](auto&, OwnDraft&) { throw std::logic_error("asked"); }), "");
}

TEST(OwnDraft, RecordsTheDistributionThatATokenWasDrawnFrom) {
  Job job;
  EXPECT_EQ(refusal_of(job,
                       [](auto&, OwnDraft& draft) {
                         draft.add(-1, 2, {.ids = kIds, .probs = kProbs});
                         const OwnDraft::Drawn drawn =
                             draft.draw(0, {.ids = kIds, .probs = kProbs});
                         EXPECT_EQ(drawn.node, 1);
                         EXPECT_TRUE(drawn.token == 2 || drawn.token == 5 || drawn.token == 7);
                       }),
            "");
  Distribution storage;
  for (const int node : {1, 2}) {
    const Distribution& dist = job.tree().proposal_prob(node, storage);
    EXPECT_THAT(dist.ids, ElementsAre(2, 5, 7));
    EXPECT_THAT(dist.probs,
                ElementsAre(::testing::DoubleEq(0.3 / 0.9), ::testing::DoubleEq(0.1 / 0.9),
                            ::testing::DoubleEq(0.5 / 0.9)));
    EXPECT_EQ(job.tree().node(node).draft_prob, kNoDistribution);  // no rule uses it
  }
}

// At temperature 0 the target's distribution is a point mass; a rejected draft distribution would
// leave no residual.
TEST(OwnDraft, HasNoDistributionsAtTemperatureZero) {
  Job job(0);
  EXPECT_EQ(refusal_of(job,
                       [](auto&, OwnDraft& draft) {
                         const std::vector<TokenId> ids = {4, 5};
                         const std::vector<double> probs = {1, 1e-30};
                         draft.add(-1, 5, {.ids = ids, .probs = probs});
                         draft.draw(-1, {.ids = ids, .probs = probs});
                       }),
            "");
  for (const DraftNode& node : job.tree().nodes()) EXPECT_EQ(node.proposal, kPointMass);
}

// Draws depend on the seed, the text's length and the node: they replay, and siblings differ.
TEST(OwnDraft, DrawsReplay) {
  const std::vector<TokenId> ids = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  const std::vector<double> probs(10, 0.1);
  std::vector<std::vector<TokenId>> drawn;
  for (const DraftNoise noise : {DraftNoise::fresh, DraftNoise::fresh, DraftNoise::coupled}) {
    Job job(1, 3, 40);
    job.job().noise = noise;
    drawn.emplace_back();
    EXPECT_EQ(
        refusal_of(job,
                   [&](auto&, OwnDraft& draft) {
                     for (int n = 0; n < 30; ++n) {
                       drawn.back().push_back(draft.draw(-1, {.ids = ids, .probs = probs}).token);
                     }
                   }),
        "");
  }
  EXPECT_EQ(drawn[0], drawn[1]);
  EXPECT_GT(std::set<TokenId>(drawn[0].begin(), drawn[0].end()).size(), 5U);
  // Plain sampling's noise decides the first child only.
  CounterChance chance(9);
  const Distribution uniform{ids, probs};
  EXPECT_EQ(drawn[2][0], chance.categorical(uniform, {3, 0, Purpose::token}));
  EXPECT_GT(std::set<TokenId>(drawn[2].begin(), drawn[2].end()).size(), 5U);
}

TEST(OwnDrafterAdapter, TellsTextsApartAndWhatBecameOfThem) {
  const auto own = std::make_shared<Proposes>([](auto&, OwnDraft& draft) {
    draft.add(-1, 1);
    draft.add(-1, 2);
    draft.add(1, 3);
  });
  OwnDrafterAdapter one(own, kVocabulary);
  OwnDrafterAdapter other(own, kVocabulary);  // belongs to another generator with the same ids
  Job job;
  one.begin(job.context());
  other.begin(job.context());
  ASSERT_EQ(own->begun.size(), 2U);
  EXPECT_NE(own->begun[0], own->begun[1]);
  one.propose({&job.job(), 1});
  Verdict verdict;
  verdict.path = {2, 3};
  const RoundResult result{.context = &job.context(), .tree = &job.tree(), .verdict = &verdict};
  one.observe({&result, 1});
  EXPECT_THAT(own->observed, ElementsAre(std::pair{own->begun[0], std::vector<int>{1, 2}}));
  one.end(job.context().id);
  one.end(job.context().id);  // safe at any time
  EXPECT_THAT(own->ended, ElementsAre(own->begun[0]));
}

// begin() passes on the drafter's error; the text has not begun and gets no end().
TEST(OwnDrafterAdapter, ATextThatCannotBeginHasNoEnd) {
  class Refuses final : public OwnDrafter {
   public:
    void begin(const OwnText&) override { throw std::runtime_error("no"); }
    void propose(const OwnText&, OwnDraft&) override {}
    void end(std::int64_t) noexcept override { ++n_ended; }
    int n_ended = 0;
  };
  const auto own = std::make_shared<Refuses>();
  OwnDrafterAdapter adapter(own, kVocabulary);
  Job job;
  EXPECT_THROW(adapter.begin(job.context()), std::runtime_error);
  adapter.end(job.context().id);
  EXPECT_EQ(own->n_ended, 0);
}

TEST(OwnDrafterSpec, IsReadForProgramsAlone) {
  const auto own = std::make_shared<Proposes>([](auto&, OwnDraft&) {});
  const auto plan = [&own](const char* spec) {
    return read_own_drafter(Spec::parse("drafter", spec), own);
  };
  EXPECT_EQ(plan("own").shape->depth(), 16);
  EXPECT_EQ(plan("own").shape->n_nodes(), 64);
  EXPECT_EQ(plan("own:mine,length=4,total=9").shape->depth(), 4);
  EXPECT_EQ(plan("own:mine,length=4,total=9").shape->n_nodes(), 9);
  EXPECT_EQ(plan("own:total=9").shape->depth(), 9);
  EXPECT_EQ(plan("own:length=200").shape->n_nodes(), 200);
  EXPECT_THROW(plan("own:mood=1"), UsageError);
  EXPECT_THROW(plan("own:length=0"), UsageError);
  for (const char* spec : {"own", "own:mine,length=4", "first:own,suffix"}) {
    try {
      (void)read_drafter(spec);
      FAIL() << spec;
    } catch (const UsageError& error) {
      EXPECT_THAT(error.what(), HasSubstr("expected a program that brings the drafter"));
    }
  }
}

// --- A wrong proposal distribution --------------------------------------------------------------

// Records sharper distributions than the tokens were drawn from. The engine cannot detect it, and
// the emitted distribution is wrong.
class SaysAnotherDistribution final : public ForwardingDrafter {
 public:
  using ForwardingDrafter::ForwardingDrafter;
  void propose(std::span<DraftJob> jobs) override {
    inner().propose(jobs);
    for (DraftJob& job : jobs) {
      for (int node = 1; node <= job.tree->n_drafted(); ++node) {
        Distribution& dist = job.tree->distribution(job.tree->node(node).proposal);
        double sum = 0;
        for (double& prob : dist.probs) sum += prob *= prob;
        for (double& prob : dist.probs) prob /= sum;
      }
    }
  }
};

TEST(OwnDrafterDistributions, AreTakenAtTheirWord) {
  test::World world = test::table_world(3);
  const test::DrafterCase drawn = {
      .name = "drawn", .spec = "own:length=2,total=2", .own = test::Own::drawn};
  const DrafterPlan plan = test::plan_of(drawn);
  const auto rule = make_rule("exact");
  const Verification verification = make_verification("exact", "exact");
  const auto prove = [&](Drafter& drafter) {
    return test::prove({.world = &world,
                        .drafter = &drafter,
                        .acceptance = verification.acceptance.get(),
                        .rule = rule.get(),
                        .shape = chain_shape(2),
                        .sampling = {.temperature = 1}});
  };
  const auto honest = plan.make(world.materials);
  EXPECT_LT(prove(*honest).error, test::kExact);
  const auto inner = plan.make(world.materials);
  SaysAnotherDistribution liar(*inner);
  EXPECT_GT(prove(liar).error, test::kCaught);
}

}  // namespace
}  // namespace outrider
