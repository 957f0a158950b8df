// SPDX-License-Identifier: Apache-2.0
// The contract suite, third part: after any acceptances, rejections or ends, a drafter's state
// equals one rebuilt from scratch. Then drafters with faulty state, which the same test must
// notice.
#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/drafting/make_tree_shape.h"
#include "model/load_model.h"
#include "outrider/error.h"
#include "sampling/counter_chance.h"
#include "speculate/drafters/model_drafter.h"
#include "tests/support/pairs_of_the_day.h"
#include "tests/support/proofs/drafter_cases.h"
#include "tests/support/proofs/drafter_walk.h"
#include "tests/support/proofs/drafter_worlds.h"

namespace outrider {
namespace {

using test::DrafterCase;
using test::DrafterFiles;
using test::kDrafterCases;
using test::MakeDrafter;
using test::walk;
using test::Walked;
using test::World;

// A walk: its seed is its place among a drafter's walks.
struct Walk {
  std::string drafter;
  std::string tree;
  std::size_t sampling = 0;  // a place in kSamplings
  std::uint32_t seed = 0;
};
const SamplingParams kSamplings[] = {
    {.temperature = 1}, {.temperature = 0}, {.temperature = 0.8, .repetition_penalty = 1.3}};

// By day a drafter has every tree and every sampling, and every tree has every sampling with some
// drafter; in nightly runs a drafter has all of them together.
std::vector<Walk> walks_of(const DrafterCase& drafter_case) {
  static const std::vector<Walk> kOfTheDay = [] {
    std::vector<Walk> all;
    for (const DrafterCase& one : kDrafterCases) {
      std::uint32_t seed = 1;
      for (const char* tree : {"", "chain:length=3", "widths:3,2,1", "static:eagle1",
                               "dynamic:total=9,depth=4,topk=3", "best:nodes=12,depth=4"}) {
        for (std::size_t sampling = 0; sampling < std::size(kSamplings); ++sampling) {
          all.push_back({one.name, tree, sampling, seed++});
        }
      }
    }
    return test::pairs_of_the_day(all, [](const Walk& walk) {
      return test::CaseValues{walk.drafter, walk.tree, std::to_string(walk.sampling)};
    });
  }();
  std::vector<Walk> walks;
  for (const Walk& walk : kOfTheDay) {
    if (walk.drafter == drafter_case.name) walks.push_back(walk);
  }
  return walks;
}

class DrafterState : public ::testing::TestWithParam<DrafterCase> {};

TEST_P(DrafterState, IsThatOfOneRebuiltFromScratch) {
  const DrafterPlan plan = test::plan_of(GetParam());
  const MakeDrafter make = [&plan](const World& world) { return plan.make(world.materials); };
  const std::vector<Walk> walks = walks_of(GetParam());
  EXPECT_GE(walks.size(), 6U);  // every tree
  for (const auto& [drafter, tree, place, seed] : walks) {
    const SamplingParams& sampling = kSamplings[place];
    const Walked walked = walk(make, tree.empty() ? plan.shape : make_tree_shape(tree), sampling,
                               GetParam().context_determined, seed);
    EXPECT_EQ(walked.difference, "") << tree << ", temperature " << sampling.temperature;
    EXPECT_EQ(walked.violation, "") << tree;
    EXPECT_GT(walked.n_drafts, 20) << tree;
    EXPECT_GT(walked.n_accepted, 10) << tree;
  }
}

INSTANTIATE_TEST_SUITE_P(, DrafterState, ::testing::ValuesIn(kDrafterCases),
                         [](const auto& info) { return std::string(info.param.name); });

// The model drafter, misinformed about what happened.
class MisinformedDrafter : public Drafter {
 public:
  explicit MisinformedDrafter(const World& world)
      : drafter_(load_model(DrafterFiles::get().target().parent_path() / "draft", {.n_threads = 1}),
                 world.vocabulary_size()) {}
  std::string_view name() const override { return "misinformed"; }
  DrafterTraits traits() const override { return drafter_.traits(); }
  void begin(const Context& context) override { drafter_.begin(context); }
  void prefill(const Context& context, std::span<const TokenId> tokens,
               const FeatureRows& features) override {
    drafter_.prefill(context, tokens, features);
  }
  void propose(std::span<DraftJob> jobs) override { drafter_.propose(jobs); }
  bool draft_at(const Context& context, const DraftTree& tree, int node, Distribution& draft_prob,
                Distribution* raw_draft) override {
    return drafter_.draft_at(context, tree, node, draft_prob, raw_draft);
  }
  void observe(std::span<const RoundResult> results) override { drafter_.observe(results); }
  void end(SequenceId id) override { drafter_.end(id); }
  std::int64_t n_passes() const override { return drafter_.n_passes(); }

 protected:
  ModelDrafter drafter_;
};

// Takes the first child for the accepted one: keys and values of rejected siblings remain.
class KeepsTheWrongSibling final : public MisinformedDrafter {
 public:
  using MisinformedDrafter::MisinformedDrafter;
  void observe(std::span<const RoundResult> results) override {
    for (RoundResult result : results) {
      Verdict verdict = *result.verdict;
      if (!verdict.path.empty()) {
        verdict.path.back() =
            result.tree->next_child(result.tree->node(verdict.path.back()).parent,
                                    result.tree->node(verdict.path.back()).parent);
      }
      result.verdict = &verdict;
      drafter_.observe({&result, 1});
    }
  }
};

// Noise depends on the order of calls.
class RollsItsOwnDice final : public MisinformedDrafter {
 public:
  using MisinformedDrafter::MisinformedDrafter;
  void propose(std::span<DraftJob> jobs) override {
    for (DraftJob& job : jobs) job.chance = &chances_.emplace_back(chances_.size());
    drafter_.propose(jobs);
  }

 private:
  std::deque<CounterChance> chances_;
};

// Confuses all texts with each other.
class ConfusesTexts final : public MisinformedDrafter {
 public:
  using MisinformedDrafter::MisinformedDrafter;
  void begin(const Context& context) override {
    Context shifted = context;
    shifted.id = 0;
    if (!begun_) drafter_.begin(shifted);
    begun_ = true;
  }
  void prefill(const Context&, std::span<const TokenId>, const FeatureRows&) override {}
  void propose(std::span<DraftJob> jobs) override {
    for (DraftJob& job : jobs) {
      Context shared = *job.context;
      shared.id = 0;
      DraftJob changed = job;
      changed.context = &shared;
      drafter_.propose({&changed, 1});
    }
  }
  bool draft_at(const Context&, const DraftTree&, int, Distribution&, Distribution*) override {
    return false;
  }
  void observe(std::span<const RoundResult> results) override {
    for (RoundResult result : results) {
      Context shared = *result.context;
      shared.id = 0;
      result.context = &shared;
      drafter_.observe({&result, 1});
    }
  }
  void end(SequenceId) override {}

 private:
  bool begun_ = false;
};

template <class Broken>
std::string found_in(const std::string& tree) {
  const MakeDrafter make = [](const World& world) { return std::make_unique<Broken>(world); };
  try {
    return walk(make, make_tree_shape(tree), {.temperature = 1}, true, 1).difference;
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(DrafterStateMutants, TheOriginalPasses) {
  EXPECT_EQ(found_in<MisinformedDrafter>("widths:3,2,1"), "");
}
TEST(DrafterStateMutants, KeepsTheWrongSibling) {
  EXPECT_NE(found_in<KeepsTheWrongSibling>("widths:3,2,1"), "");
}
TEST(DrafterStateMutants, RollsItsOwnDice) {
  EXPECT_NE(found_in<RollsItsOwnDice>("chain:length=3"), "");
}
TEST(DrafterStateMutants, ConfusesTexts) {
  EXPECT_NE(found_in<ConfusesTexts>("chain:length=3"), "");
}

}  // namespace
}  // namespace outrider
