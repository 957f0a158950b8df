// SPDX-License-Identifier: Apache-2.0
// The planner on a simulated clock: its cost with useless, misleading and good drafts, beside plain
// decoding and the best fixed length.
#include "engine/drafting/draft_planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string_view>
#include <vector>

#include "sampling/counter_chance.h"
#include "speculate/acceptances/coupled.h"
#include "speculate/drafters/forwarding_drafter.h"
#include "speculate/rule.h"
#include "speculate/tree_shapes/fixed_shape.h"

namespace outrider {
namespace {

// Seconds on a clock that only the simulation advances.
struct Costs {
  double pass = 1;           // of one row, in seconds
  double row = 0.05;         // seconds per further row
  double level = 0.2;        // seconds of a draft's first level
  double further = 1;        // cost of each further level, relative to the first
  bool says_further = true;  // DrafterTraits::further_level
  double catch_up = 0.05;    // seconds per token that the drafter has not seen
};

// Looks to the planner like a small model.
class FakeDrafter final : public Drafter {
 public:
  std::string_view name() const override { return "fake"; }
  DrafterTraits traits() const override {
    return {.has_draft_prob = true, .further_level = further};
  }
  bool catches_up() const override { return true; }
  std::optional<double> foreseen(const Context& context, std::size_t n_tokens) override {
    return foresees ? foresees(context.tokens.size(), n_tokens) : std::optional<double>();
  }
  std::size_t n_behind(const Context& context) const override {
    return context.tokens.size() - 1 - (n_skipped > 0 ? 0 : n_seen);
  }
  std::size_t n_behind_recent(const Context& context) const override {
    const bool may_begin_late = n_seen == 0 && context.tokens.size() > n_recent;
    return may_begin_late ? n_recent - 1 : context.tokens.size() - 1 - n_seen;
  }
  // Called before a draft: what the drafter runs.
  std::size_t catch_up(const Context& context, bool recent_only) {
    const std::size_t n_run = recent_only ? n_behind_recent(context) : n_behind(context);
    if (!recent_only) n_skipped = 0;
    if (recent_only && n_seen == 0) n_skipped = context.tokens.size() - 1 - n_run;
    n_seen = context.tokens.size() - 1;
    return n_run;
  }
  void begin(const Context&) override {}
  void propose(std::span<DraftJob>) override {}
  void observe(std::span<const RoundResult>) override {}
  void end(SequenceId) override {}
  std::int64_t n_passes() const override { return 0; }

  double further = 1;
  std::size_t n_seen = 0;     // tokens seen, beyond the first n_skipped
  std::size_t n_skipped = 0;  // tokens skipped by a draft of recent tokens
  std::size_t n_recent = 64;
  std::function<double(std::size_t, std::size_t)> foresees;
};

// The probability that the drafter's token is accepted at the place of a new token; the first one's
// place is 0.
using Acceptance01 = std::function<double(std::int64_t)>;

struct Simulation {
  double seconds = 0;
  double first_seconds = 0;  // until the first token
  std::int64_t n_tokens = 0;
  std::vector<int> drafted;  // per new token: the nodes drafted in the round that emitted it
  double tokens_per_second() const { return static_cast<double>(n_tokens) / seconds; }
};

// A planner, a drafter and a simulated machine, for one text after another.
class World {
 public:
  // of_recent: the acceptance of recent_only drafts, relative to others.
  explicit World(const Costs& costs, double of_recent = 1)
      : planner([this] { return clock_; }), costs_(costs), of_recent_(of_recent) {
    if (costs.says_further) drafter.further = costs.further;
    std::vector<PassTimes::Measured> measured;
    for (const int rows : {1, 2, 4, 8, 16, 32}) measured.push_back({rows, pass(rows)});
    planner.set_passes(PassTimes(measured));
  }

  // fixed: the draft length; planned if negative.
  Simulation run(const Acceptance01& acceptance, int n_tokens, int fixed = -1, int n_prompt = 100) {
    const auto rule = make_coupled(std::make_shared<ExactRule>());
    const std::vector<TokenId> prompt(static_cast<std::size_t>(n_prompt), 1);
    CounterChance chance(1);
    Stream stream(next_id_++, prompt, Transform({.temperature = 0}, 100), chance,
                  {.drafter = &drafter,
                   .acceptance = rule.get(),
                   .shape = chain_shape(fixed >= 0 ? fixed : kDeepestDraft),
                   .stop = nullptr});
    stream.max_total = n_prompt + n_tokens;
    stream.n_run = prompt.size() - 1;
    DraftingText drafting(nullptr);
    if (fixed < 0) stream.drafting.stop = drafting.stop();
    drafter.n_seen = fixed < 0 ? 0 : prompt.size() - 1;
    drafter.n_skipped = 0;
    // From so few tokens it predicts half as well.
    drafter.foresees = [&](std::size_t n_all, std::size_t n_tokens) {
      double n_foreseen = 0;
      for (std::size_t at = n_all - n_tokens + 1; at < n_all; ++at) {
        const auto place = static_cast<std::int64_t>(at) - stream.n_prompt;
        std::bernoulli_distribution right(0.5 * acceptance(place));
        n_foreseen += right(random_) ? 1 : 0;
      }
      clock_ += costs_.level + costs_.catch_up * static_cast<double>(n_tokens - 2);
      return n_foreseen;
    };
    Simulation simulation;
    const double began = clock_;
    if (fixed >= 0) clock_ += costs_.catch_up * n_prompt;
    while (static_cast<std::int64_t>(stream.tokens.size()) < stream.max_total) {
      StreamShare share{.stream = &stream};
      const DraftPlanner::Text text{.share = &share, .adaptive = fixed < 0, .drafting = &drafting};
      planner.plan({&text, 1});
      const RoundTimes times = round(share, acceptance, simulation);
      simulation.seconds = clock_ - began;
      if (simulation.first_seconds == 0) simulation.first_seconds = simulation.seconds;
      planner.learn({&text, 1}, times, [&](const Drafter*) { return times.draft; });
    }
    planner.ended(simulation.n_tokens);
    return simulation;
  }

  DraftPlanner planner;
  FakeDrafter drafter;

 private:
  double pass(int rows) const { return costs_.pass + costs_.row * (rows - 1); }

  RoundTimes round(const StreamShare& share, const Acceptance01& acceptance,
                   Simulation& simulation) {
    Stream& stream = *share.stream;
    std::uniform_real_distribution<double> uniform;
    stream.tree.reset(1, static_cast<std::int64_t>(stream.tokens.size()));
    stream.verdict.path.clear();
    const std::int64_t first_place =
        static_cast<std::int64_t>(stream.tokens.size()) - stream.n_prompt;
    const int most =
        std::min({share.draft_depth, stream.drafting.shape->depth(),
                  static_cast<int>(stream.max_total) - static_cast<int>(stream.tokens.size()) - 1});
    RoundTimes times;
    if (most > 0) {
      times.draft += costs_.catch_up *
                     static_cast<double>(drafter.catch_up(stream.context(), share.recent_only));
    }
    bool stands = true;
    for (int depth = 1; depth <= most; ++depth) {
      // The drafter's confidence is informative: half of its tokens are surer than the others.
      const double mean =
          acceptance(first_place + depth - 1) * (drafter.n_skipped > 0 ? of_recent_ : 1);
      const double spread = 0.7 * std::min(mean, 1 - mean);
      const double prob = uniform(random_) < 0.5 ? mean + spread : mean - spread;
      stream.tree.add_child(depth - 1, 1, kPointMass);
      times.draft += costs_.level * (depth == 1 ? 1 : costs_.further);
      stands = stands && uniform(random_) < prob;
      if (stands) stream.verdict.path.push_back(depth);
      // A bad drafter is as confident as a good one.
      const double said = mean < 0.2 ? 0.3 + 0.7 * uniform(random_) : prob;
      if (stream.drafting.stop != nullptr && stream.drafting.stop->stop_after(1, said)) break;
    }
    times.forward = pass(stream.tree.n_nodes());
    clock_ += times.draft + times.forward;
    const std::size_t n_new = stream.verdict.path.size() + 1;
    simulation.n_tokens += static_cast<std::int64_t>(n_new);
    simulation.drafted.insert(simulation.drafted.end(), n_new, stream.tree.n_drafted());
    if (most > 0) drafter.n_seen += stream.verdict.path.size();
    stream.tokens.insert(stream.tokens.end(), n_new, 1);
    return times;
  }

  Costs costs_;
  double of_recent_;
  double clock_ = 0;
  SequenceId next_id_ = 0;
  std::mt19937 random_{5};
};

// The median speed over texts, relative to plain decoding.
double speed(const Costs& costs, const Acceptance01& acceptance, int fixed = -1,
             int n_tokens = 256) {
  World world(costs);
  std::vector<double> speeds;
  for (int text = 0; text < 201; ++text) {
    speeds.push_back(world.run(acceptance, n_tokens, fixed).tokens_per_second() * costs.pass);
  }
  std::nth_element(speeds.begin(), speeds.begin() + 100, speeds.end());
  return speeds[100];
}

double best_fixed(const Costs& costs, const Acceptance01& acceptance) {
  double best = 0;
  for (int length = 1; length <= 10; ++length) {
    best = std::max(best, speed(costs, acceptance, length));
  }
  return best;
}

const Costs kMachines[] = {
    {.pass = 1, .row = 0.02, .level = 0.1, .catch_up = 0.01},  // the drafter costs a tenth
    {.pass = 1, .row = 0.1, .level = 0.33, .catch_up = 0.12},  // the drafter costs a third
    {.pass = 1, .row = 0.3, .level = 0.05, .catch_up = 0.02},  // rows are expensive
};

TEST(DraftPlanner, IsNeverSlowerByAUselessDrafter) {
  for (const Costs& costs : kMachines) {
    EXPECT_GT(speed(costs, [](std::int64_t) { return 0.0; }), 0.98) << costs.level;
  }
}

TEST(DraftPlanner, IsNeverSlowerByAMisleadingDrafter) {
  for (const Costs& costs : kMachines) {
    const auto misleads = [](std::int64_t place) { return place < 200 ? 0.8 : 0.0; };
    EXPECT_GT(speed(costs, misleads, -1, 800), 0.98) << costs.level;
  }
}

TEST(DraftPlanner, IsAboutAsFastAsTheBestFixedLength) {
  for (const Costs& costs : kMachines) {
    for (const double mean : {0.4, 0.6, 0.8, 0.95}) {
      const auto acceptance = [mean](std::int64_t) { return mean; };
      const double best = std::max(1.0, best_fixed(costs, acceptance));
      EXPECT_GT(speed(costs, acceptance), 0.97 * best) << costs.level << " " << mean;
    }
  }
}

// A head that drafts a block in one pass: its first level costs nearly as much as all. If the best
// length gains less than a fifth, planned drafts may stay off.
TEST(DraftPlanner, KnowsThatFurtherLevelsOfABlockCostLittle) {
  for (const double further : {0.0, 0.03}) {
    for (const double level : {0.1, 0.4, 0.9}) {
      for (const double mean : {0.4, 0.6, 0.8, 0.95}) {
        const Costs costs{
            .pass = 1, .row = 0.02, .level = level, .further = further, .catch_up = 0.01};
        const auto acceptance = [mean](std::int64_t) { return mean; };
        const double best = best_fixed(costs, acceptance);
        EXPECT_GT(speed(costs, acceptance), best > 1.2 ? 0.96 * best : 0.98)
            << further << " " << level << " " << mean;
      }
    }
  }
}

// Taken for a head whose levels all cost the mean, it drafts worse.
TEST(DraftPlanner, IsSlowerIfItDoesNotKnowThatFurtherLevelsCostLittle) {
  Costs costs{.pass = 1, .row = 0.02, .level = 0.9, .further = 0, .catch_up = 0.01};
  const auto acceptance = [](std::int64_t) { return 0.8; };
  const double knowing = speed(costs, acceptance);
  costs.says_further = false;
  EXPECT_GT(knowing, 1.02 * speed(costs, acceptance));
}

TEST(DraftPlanner, ComesBackWithin64Tokens) {
  for (const Costs& costs : kMachines) {
    World world(costs);
    const auto acceptance = [](std::int64_t place) { return place < 400 ? 0.0 : 0.9; };
    std::vector<std::int64_t> n_until;
    for (int text = 0; text < 21; ++text) {
      const Simulation simulation = world.run(acceptance, 1024);
      std::int64_t place = 400;
      // Drafting has resumed if six of eight tokens in a row came from rounds with drafts.
      const auto drafts = [&](std::int64_t at) {
        return std::count_if(simulation.drafted.begin() + at, simulation.drafted.begin() + at + 8,
                             [](int n_nodes) { return n_nodes > 0; }) >= 6;
      };
      while (place + 8 < simulation.n_tokens && !drafts(place)) ++place;
      n_until.push_back(place - 400);
    }
    std::sort(n_until.begin(), n_until.end());
    EXPECT_LT(n_until[10], 64) << costs.level;
  }
}

TEST(DraftPlanner, LetsTheFirstTokenGoFirst) {
  for (const Costs& costs : kMachines) {
    World world(costs);
    for (int text = 0; text < 5; ++text) {
      const Simulation simulation = world.run([](std::int64_t) { return 0.9; }, 128);
      EXPECT_LT(simulation.first_seconds, 1.1 * costs.pass);
    }
  }
}

// Speed with planned drafts relative to plain decoding, for texts with long prompts.
double speed_behind(World& world, const Acceptance01& acceptance, int n_tokens, int n_prompt) {
  double seconds = 0;
  for (int text = 0; text < 20; ++text) {
    seconds += world.run(acceptance, n_tokens, -1, n_prompt).seconds;
  }
  return 20 * n_tokens / seconds;
}

// Catching up with 700 tokens takes up to 84 passes. Drafts show how much of the prompt the drafter
// needs: each text loses a few if it needs all.
TEST(DraftPlanner, CatchesUpWithLongPromptsOnlyAsFarAsPays) {
  const auto good = [](std::int64_t) { return 0.8; };
  for (const Costs& costs : kMachines) {
    World short_answers(costs);
    for (int text = 0; text < 20; ++text) short_answers.run(good, 200, -1, 50);
    // Here 64 tokens take less than a fifth of such an answer.
    const double least = costs.catch_up < 0.05 ? 1.1 : 0.98;
    // Texts beside others are shown to a drafter from their first token if it reads prompts.
    EXPECT_TRUE(short_answers.planner.reads_prompts(&short_answers.drafter));
    EXPECT_GT(speed_behind(short_answers, good, 20, 700), least) << costs.level;
    EXPECT_FALSE(short_answers.planner.reads_prompts(&short_answers.drafter));
    World all_needed(costs, 0);
    const double of_short = speed_behind(all_needed, good, 20, 700);
    EXPECT_GT(of_short, 0.9) << costs.level;
    const double of_long = speed_behind(all_needed, good, 2000, 700);
    EXPECT_GT(of_long, 0.9 * speed(costs, good, -1, 2000)) << costs.level;
  }
}

// A chooser with a single option.
class FakeChooser final : public ForwardingDrafter {
 public:
  explicit FakeChooser(FakeDrafter& option) : ForwardingDrafter(option), option_(&option) {
    options_.push_back({option_, shape_.get(), "fake"});
  }
  std::span<const Option> choices() const override { return options_; }

 private:
  FakeDrafter* option_;
  std::shared_ptr<const TreeShape> shape_ = chain_shape(1);
  std::vector<Option> options_;
};

// Two rows cost as much as one, and three far more. A draft would pay for either text alone and for
// neither beside the other. A plan kept for further rounds covers both.
TEST(DraftPlanner, APlanThatStandsIsThatOfAllTexts) {
  FakeDrafter option;
  FakeChooser drafter(option);
  DraftPlanner planner([] { return 0.0; });
  planner.set_passes(PassTimes({{1, 1}, {2, 1}, {3, 10}, {4, 20}}));
  KnownOfDrafter known;
  known.levels = PassTimes({{1, 0.01}});
  known.greedy.past.suppose(1000, 0.9);
  planner.set_known(&option, known);
  const auto rule = make_coupled(std::make_shared<ExactRule>());
  const std::vector<TokenId> prompt(9, 1);
  option.n_seen = prompt.size();  // it has caught up
  CounterChance chance(1);
  std::vector<std::unique_ptr<Stream>> streams;
  std::vector<std::unique_ptr<DraftingText>> draftings;
  for (SequenceId id = 0; id < 2; ++id) {
    streams.push_back(std::make_unique<Stream>(
        id, prompt, Transform({.temperature = 0}, 100), chance,
        Drafting{
            .drafter = &drafter, .acceptance = rule.get(), .shape = chain_shape(kDeepestDraft)}));
    streams.back()->tokens.push_back(1);
    streams.back()->max_total = 100;
    streams.back()->n_run = prompt.size();
    draftings.push_back(std::make_unique<DraftingText>(nullptr));
  }
  const auto depths = [&](std::size_t n_texts) {
    std::vector<StreamShare> shares;
    std::vector<DraftPlanner::Text> texts;
    for (std::size_t i = 0; i < n_texts; ++i) shares.push_back({.stream = streams[i].get()});
    for (std::size_t i = 0; i < n_texts; ++i) {
      texts.push_back({.share = &shares[i], .adaptive = true, .drafting = draftings[i].get()});
    }
    planner.plan(texts);
    std::vector<int> planned;
    for (const StreamShare& share : shares) planned.push_back(share.choice->depth);
    return planned;
  };
  for (int round = 0; round < 5; ++round) {
    EXPECT_EQ(depths(2), std::vector<int>({0, 0})) << round;
  }
  EXPECT_GT(depths(1)[0], 0);
}

}  // namespace
}  // namespace outrider
