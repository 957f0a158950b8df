// SPDX-License-Identifier: Apache-2.0
// Promise 1 with planned drafts, by enumeration. Each round's depth depends on earlier rounds and
// on the drafter's probabilities of the judged tokens; the distribution stays the target's to
// 1e-12. Cutting a draft because of the token that is cut off must be noticed.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "engine/drafting/draft_planner.h"
#include "speculate/acceptances/block.h"
#include "speculate/acceptances/coupled.h"
#include "speculate/acceptances/multi_round.h"
#include "speculate/drafters/composite/auto_drafter.h"
#include "speculate/drafters/forwarding_drafter.h"
#include "speculate/drafters/lookup/ngram_drafter.h"
#include "speculate/drafters/lookup/recycling_drafter.h"
#include "speculate/drafters/model_drafter.h"
#include "tests/support/proofs/enumerated_process.h"
#include "tests/support/proofs/exactness.h"

namespace outrider {
namespace {

using test::add_target_process;
using test::distance;
using test::Enumerated;
using test::EnumeratingChance;
using test::kCaught;
using test::kExact;
using test::TableModel;
using test::target_distribution;
using test::transforms;
using test::Trial;

// Simulated times for the planner: a pass of one row takes a second.
struct Clockwork {
  double row = 0.1;
  double level = 0.2;

  void set(DraftPlanner& planner, Drafter* drafter) const {
    planner.set_passes(PassTimes({{1, 1}, {8, 1 + 7 * row}}));
    KnownOfDrafter known;
    known.levels = PassTimes({{1, level}});
    planner.set_known(drafter, known);
    for (const Drafter::Option& option : drafter->choices()) {
      planner.set_known(option.drafter, known);
    }
  }
  RoundTimes times(const Stream& stream) const {
    const int n_drafted = stream.tree.n_drafted();
    // Long rounds: a trial is due right after a round without a draft.
    return {.draft = level * n_drafted, .forward = n_drafted == 0 ? 1e6 : 1 + row * n_drafted};
  }
};

// test::enumerate() with a planner that learns along each path. Records the drafts over all
// paths.
struct Planned {
  std::set<int> lengths;
  std::set<int> taken;    // DraftChoice::taken, of drafters that choose
  std::set<bool> recent;  // DraftJob::recent_only, of rounds that drafted
};

Enumerated enumerate_planned(const Trial& trial, const Clockwork& clockwork, Planned& planned,
                             bool defers_drafter = false) {
  Enumerated result;
  EnumeratingChance chance;
  Decoder decoder(*trial.target, trial.drafter, *trial.acceptance, chain_shape(trial.draft_length),
                  nullptr);
  chance.for_each_path([&] {
    DraftPlanner planner;
    clockwork.set(planner, trial.drafter);
    Stream stream(0, trial.prompt,
                  Transform(trial.sampling, trial.target->config().vocabulary_size), chance);
    stream.max_total = stream.n_prompt + trial.n_tokens;
    stream.defers_drafter = defers_drafter;
    decoder.begin(stream);
    DraftingText drafting(nullptr);
    stream.drafting.stop = drafting.stop();
    while (!stream.finished) {
      StreamShare share{.stream = &stream};
      const DraftPlanner::Text text{.share = &share, .adaptive = true, .drafting = &drafting};
      planner.plan({&text, 1});
      decoder.round({&share, 1}, [](Stream&, const Committed&) { return false; });
      planned.lengths.insert(stream.tree.n_drafted());
      if (stream.tree.n_drafted() > 0) planned.recent.insert(share.recent_only);
      if (share.choice != nullptr) planned.taken.insert(share.choice->taken);
      const RoundTimes times = clockwork.times(stream);
      planner.learn({&text, 1}, times, [&times](const Drafter*) { return times.draft; });
    }
    decoder.end(stream);
    const std::vector<TokenId> emitted(stream.tokens.begin() + stream.n_prompt,
                                       stream.tokens.end());
    add_target_process(trial, emitted, chance.weight(), result.dist);
    result.weight += chance.weight();
    ++result.n_paths;
  });
  return result;
}

const std::shared_ptr<const Rule> kRule = std::make_shared<ExactRule>();

// Prompts contain repetitions, so that lookup drafters have matches.
Planned expect_exact(const std::function<std::unique_ptr<Drafter>(std::uint32_t seed)>& make,
                     bool defers_drafter = false, int n_tokens = 4) {
  Planned planned;
  for (const auto& acceptance : {make_multi_round(kRule), make_block(kRule), make_coupled(kRule)}) {
    for (std::uint32_t seed = 1; seed <= 4; ++seed) {
      for (const auto& [name, sampling] : transforms()) {
        for (const Clockwork& clockwork : {Clockwork{0.05, 0.1}, Clockwork{0.3, 0.5}}) {
          TableModel target(3, 2 * seed);
          const std::unique_ptr<Drafter> drafter = make(seed);
          const Trial trial{.target = &target,
                            .drafter = drafter.get(),
                            .acceptance = acceptance.get(),
                            .draft_length = 3,
                            .sampling = sampling,
                            .prompt = {0, 2, 1, 0, 2},
                            .n_tokens = n_tokens};
          const Enumerated enumerated =
              enumerate_planned(trial, clockwork, planned, defers_drafter);
          EXPECT_NEAR(enumerated.weight, 1.0, kExact) << name;
          EXPECT_LT(distance(enumerated.dist, target_distribution(trial)), kExact)
              << name << " " << acceptance->name();
        }
      }
    }
  }
  // Otherwise nothing was planned: no draft, and several lengths.
  EXPECT_GE(planned.lengths.size(), 3U);
  return planned;
}

std::unique_ptr<Drafter> make_ngram() {
  return std::make_unique<NgramDrafter>(
      NgramDrafter::Options{.shortest = 1, .longest = 2, .length = 3});
}

std::unique_ptr<Drafter> make_model(std::uint32_t seed) {
  return std::make_unique<ModelDrafter>(std::make_unique<TableModel>(3, 2 * seed + 1), 3);
}

TEST(ControllerExactness, PlannedChains) { expect_exact(make_model); }

// A model drafter that has not seen the prompt, and drafts from the last tokens until the planner
// expects the whole text to pay.
TEST(ControllerExactness, PlannedChainsOfTextsBegunLate) {
  const auto make = [](std::uint32_t seed) {
    return std::make_unique<ModelDrafter>(std::make_unique<TableModel>(3, 2 * seed + 1), 3,
                                          ModelDrafting{.n_recent = 2});
  };
  const Planned planned = expect_exact(make, /*defers_drafter=*/true);
  EXPECT_TRUE(planned.recent.contains(true));
}

TEST(ControllerExactness, DraftsThatAreRated) {
  expect_exact([](std::uint32_t) { return make_ngram(); });
}

// Drafts depend on the target's logits after rejected drafts. The prompt gives no rows, so one more
// round is run, with drafts of two tokens.
TEST(ControllerExactness, DraftsThatAreRecycled) {
  const auto make = [](std::uint32_t) {
    return std::make_unique<RecyclingDrafter>(RecyclingDrafter::Options{.n_candidates = 2});
  };
  expect_exact(make, /*defers_drafter=*/false, /*n_tokens=*/5);
}

TEST(ControllerExactness, DraftsThatAreChosen) {
  const Planned planned = expect_exact([](std::uint32_t seed) {
    std::vector<CompositeDrafter::Part> parts;
    parts.push_back({make_ngram(), chain_shape(3)});
    parts.push_back({make_model(seed), chain_shape(3)});
    return std::make_unique<AutoDrafter>(std::move(parts), chain_shape(3), DrafterTraits{});
  });
  EXPECT_EQ(planned.taken, (std::set<int>{DraftChoice::kNone, 0, 1}));
}

// A mutant that looks at a drafted token first: it drops tokens that the drafter finds unlikely.
class ChoosyDrafter final : public ForwardingDrafter {
 public:
  using ForwardingDrafter::ForwardingDrafter;
  void propose(std::span<DraftJob> jobs) override {
    inner().propose(jobs);
    for (DraftJob& job : jobs) {
      const DraftTree drafted = *job.tree;
      const int last = drafted.n_drafted();
      if (last == 0) continue;
      const DraftNode& node = drafted.node(last);
      const Distribution& dist = drafted.distribution(node.proposal);
      if (dist.prob(node.token) >= 0.4) continue;
      job.tree->reset(drafted.node(0).token, drafted.n_committed());
      for (int kept = 1; kept < last; ++kept) {
        const int own = job.tree->add_distribution();
        job.tree->distribution(own) = drafted.distribution(drafted.node(kept).proposal);
        job.tree->set_draft_prob(kept - 1, own);
        job.tree->add_child(kept - 1, drafted.node(kept).token, own,
                            drafted.node(kept).replacement);
      }
    }
  }
};

TEST(ControllerExactness, NoticesAdmissionThatLooksAtTheToken) {
  double worst = 0;
  for (std::uint32_t seed = 1; seed <= 4; ++seed) {
    TableModel target(3, 2 * seed);
    ModelDrafter inner(std::make_unique<TableModel>(3, 2 * seed + 1), 3);
    ChoosyDrafter drafter(inner);
    const auto acceptance = make_multi_round(kRule);
    const Trial trial{.target = &target,
                      .drafter = &drafter,
                      .acceptance = acceptance.get(),
                      .draft_length = 3,
                      .sampling = {.temperature = 1},
                      .prompt = {0, 2},
                      .n_tokens = 4};
    Planned planned;
    const Enumerated enumerated = enumerate_planned(trial, {0.05, 0.1}, planned);
    EXPECT_NEAR(enumerated.weight, 1.0, kExact);
    worst = std::max(worst, distance(enumerated.dist, target_distribution(trial)));
  }
  EXPECT_GT(worst, kCaught);
}

}  // namespace
}  // namespace outrider
