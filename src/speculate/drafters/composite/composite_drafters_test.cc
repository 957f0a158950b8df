// SPDX-License-Identifier: Apache-2.0
// Composite drafters are exact whatever their parts are, give each part random keys of its own, and
// agree with the text after any round.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "outrider/error.h"
#include "sampling/counter_chance.h"
#include "speculate/drafters/composite/first_drafter.h"
#include "speculate/drafters/composite/merge_drafter.h"
#include "speculate/drafters/composite/relay_drafter.h"
#include "speculate/drafters/composite/staged_drafter.h"
#include "speculate/drafters/forwarding_drafter.h"
#include "speculate/drafters/model_drafter.h"
#include "speculate/registry/drafter_registry.h"
#include "speculate/tree_shapes/fixed_shape.h"
#include "speculate/tree_shapes/open_shape.h"
#include "tests/support/proofs/enumerated_process.h"
#include "tests/support/proofs/exactness.h"

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
using ::testing::HasSubstr;

const std::shared_ptr<const Rule> kRule = std::make_shared<ExactRule>();
using Part = CompositeDrafter::Part;
using Parts = std::vector<Part>;

std::shared_ptr<const TreeShape> widths(std::vector<int> counts) {
  return std::make_shared<FixedShape>(widths_tree(counts));
}

Part model_part(std::uint32_t seed, int vocabulary, std::shared_ptr<const TreeShape> shape) {
  return {
      std::make_unique<ModelDrafter>(std::make_unique<TableModel>(vocabulary, seed), vocabulary),
      std::move(shape)};
}

// Drafts the next two token ids after the last token; drafts nothing after the token `silent`.
class NamingDrafter final : public Drafter {
 public:
  NamingDrafter(int vocabulary, TokenId silent) : vocabulary_(vocabulary), silent_(silent) {}
  std::string_view name() const override { return "naming"; }
  DrafterTraits traits() const override { return {}; }
  void begin(const Context&) override {}
  void propose(std::span<DraftJob> jobs) override {
    for (DraftJob& job : jobs) {
      int node = 0;
      while (job.tree->node(node).token != silent_ && job.tree->node(node).depth < 2 &&
             job.tree->node(node).depth < job.budget.depth &&
             job.tree->n_drafted() < job.budget.n_nodes) {
        const TokenId next = (job.tree->node(node).token + 1) % vocabulary_;
        node = job.tree->add_child(node, next, kPointMass);
      }
    }
  }
  void observe(std::span<const RoundResult>) override {}
  void end(SequenceId) override {}
  std::int64_t n_passes() const override { return 0; }

 private:
  int vocabulary_;
  TokenId silent_;
};

Part naming_part(int vocabulary, TokenId silent = kNoToken) {
  return {std::make_unique<NamingDrafter>(vocabulary, silent), chain_shape(2)};
}

template <class... Each>
Parts parts_of(Each... each) {
  Parts parts;
  (parts.push_back(std::move(each)), ...);
  return parts;
}

std::shared_ptr<const TreeShape> open(int depth, int n_nodes) {
  return std::make_shared<OpenShape>(depth, n_nodes);
}

Trial trial_of(TableModel& target, Drafter& drafter, const Acceptance& acceptance,
               std::shared_ptr<const TreeShape> shape, const SamplingParams& sampling) {
  return {.target = &target,
          .drafter = &drafter,
          .acceptance = &acceptance,
          .shape = std::move(shape),
          .sampling = sampling,
          .prompt = {0, 2},
          .n_tokens = 3};
}

std::vector<std::unique_ptr<Acceptance>> acceptances() {
  std::vector<std::unique_ptr<Acceptance>> all;
  all.push_back(make_multi_round(kRule));
  all.push_back(make_traversal(kRule));
  all.push_back(make_coupled(kRule));
  return all;
}

void expect_exact(Drafter& drafter, std::uint32_t seed, std::shared_ptr<const TreeShape> shape,
                  int vocabulary = 3) {
  for (const auto& acceptance : acceptances()) {
    for (const auto& [name, sampling] : transforms()) {
      TableModel target(vocabulary, seed);
      const Trial trial = trial_of(target, drafter, *acceptance, shape, sampling);
      const Enumerated enumerated = enumerate(trial);
      EXPECT_NEAR(enumerated.weight, 1.0, kExact) << acceptance->name() << ", " << name;
      EXPECT_LT(distance(enumerated.dist, target_distribution(trial)), kExact)
          << acceptance->name() << ", " << name;
    }
  }
}

TEST(MergeDrafter, IsExactForModelsBesideModelsAndNamedTokens) {
  for (std::uint32_t seed = 1; seed <= 2; ++seed) {
    const auto shape = open(2, 8);
    MergeDrafter models(
        parts_of(model_part(10 + seed, 3, widths({2})), model_part(20 + seed, 3, chain_shape(2))),
        shape);
    expect_exact(models, seed, shape);
    MergeDrafter mixed(
        parts_of(naming_part(3), model_part(20 + seed, 3, chain_shape(2)), naming_part(3, 1)),
        shape);
    expect_exact(mixed, seed, shape);
  }
}

TEST(MergeDrafter, DrawsOnceForEachPartAndSharesNamedTokens) {
  const auto shape = open(2, 8);
  MergeDrafter drafter(parts_of(naming_part(5), naming_part(5, 3), model_part(3, 5, widths({2}))),
                       shape);
  CounterChance chance(1);
  Stream stream(0, std::vector<TokenId>{2}, Transform({.temperature = 1}, 5), chance);
  const Context context = stream.context();
  stream.tree.reset(2, 1);
  drafter.begin(context);
  DraftJob job{.context = &context,
               .budget = {.depth = 2, .n_nodes = 8},
               .shape = shape.get(),
               .chance = &chance,
               .tree = &stream.tree};
  drafter.propose({&job, 1});
  // 2 -> 3 -> 4 come from the first part; the second stops after 3 and adds nothing; the model
  // draws two.
  ASSERT_EQ(stream.tree.n_drafted(), 4);
  EXPECT_EQ(stream.tree.node(1).token, 3);
  EXPECT_EQ(stream.tree.node(2).token, 4);
  EXPECT_EQ(stream.tree.node(2).parent, 1);
  EXPECT_NE(stream.tree.node(3).proposal, kPointMass);
  EXPECT_EQ(stream.tree.node(4).parent, 0);
}

TEST(MergeDrafter, KeepsToTheBudget) {
  for (int n_nodes = 1; n_nodes <= 6; ++n_nodes) {
    const auto shape = open(2, n_nodes);
    MergeDrafter drafter(parts_of(model_part(3, 4, widths({2, 1})), model_part(4, 4, widths({2}))),
                         shape);
    TableModel target(4, 1);
    const auto acceptance = make_multi_round(kRule);
    Decoder decoder(target, &drafter, *acceptance, shape, nullptr);
    CounterChance chance(7);
    Stream stream(0, std::vector<TokenId>{0}, Transform({.temperature = 1}, 4), chance);
    stream.max_total = 100;
    decoder.begin(stream);
    Stream* const streams[] = {&stream};
    decoder.round(streams, [](Stream&, const Committed&) { return false; });
    EXPECT_EQ(stream.tree.n_drafted(), n_nodes);
  }
}

// Mutants: a Chance around the drafter maps the parts' separate keys to shared ones.
class SharedKeys final : public Chance {
 public:
  using Merge = Draw (*)(Draw draw);
  SharedKeys(Chance& chance, Merge merge) : chance_(&chance), merge_(merge) {}
  bool bernoulli(double prob, const Draw& draw) override {
    return chance_->bernoulli(prob, merge_(draw));
  }
  TokenId categorical(const Distribution& distribution, const Draw& draw) override {
    return chance_->categorical(distribution, merge_(draw));
  }

 private:
  Chance* chance_;
  Merge merge_;
};

class WithSharedKeys final : public ForwardingDrafter {
 public:
  WithSharedKeys(Drafter& drafter, SharedKeys::Merge merge)
      : ForwardingDrafter(drafter), merge_(merge) {}
  std::string_view name() const override { return "with shared keys"; }
  void propose(std::span<DraftJob> jobs) override {
    std::deque<SharedKeys> chances;
    for (DraftJob& job : jobs) job.chance = &chances.emplace_back(*job.chance, merge_);
    inner().propose(jobs);
  }

 private:
  SharedKeys::Merge merge_;
};

double distance_with(SharedKeys::Merge merge, Drafter& drafter, const Acceptance& acceptance,
                     std::shared_ptr<const TreeShape> shape) {
  WithSharedKeys mutant(drafter, merge);
  TableModel target(3, 1);
  const Trial trial = trial_of(target, mutant, acceptance, std::move(shape), {.temperature = 1});
  return distance(enumerate(trial).dist, target_distribution(trial));
}

TEST(MergeDrafter, MutantWithOneKeyForAllPartsIsCaught) {
  const auto shape = open(1, 2);
  MergeDrafter drafter(
      parts_of(model_part(11, 3, chain_shape(1)), model_part(21, 3, chain_shape(1))), shape);
  const auto acceptance = make_multi_round(kRule);
  const auto one_key = [](Draw draw) {
    draw.node /= 2;
    return draw;
  };
  EXPECT_GT(distance_with(one_key, drafter, *acceptance, shape), kCaught);
  EXPECT_LT(distance_with([](Draw draw) { return draw; }, drafter, *acceptance, shape), kExact);
}

TEST(FirstDrafter, IsExactAndFallsThroughToThePartThatHasADraft) {
  const auto shape = open(2, 4);
  const auto traits = DrafterTraits{};
  FirstDrafter drafter(parts_of(naming_part(3, 2), model_part(21, 3, widths({2, 1}))), shape,
                       traits);
  expect_exact(drafter, 1, shape);

  CounterChance chance(1);
  for (const auto& [root, n_drafted] : {std::pair{0, 2}, std::pair{2, 4}}) {
    Stream stream(0, std::vector<TokenId>{root}, Transform({.temperature = 1}, 3), chance);
    const Context context = stream.context();
    stream.tree.reset(root, 1);
    drafter.begin(context);
    DraftJob job{.context = &context,
                 .budget = {.depth = 2, .n_nodes = 4},
                 .shape = shape.get(),
                 .chance = &chance,
                 .tree = &stream.tree};
    drafter.propose({&job, 1});
    EXPECT_EQ(stream.tree.n_drafted(), n_drafted) << root;
    EXPECT_EQ(stream.tree.node(1).proposal == kPointMass, root == 0);
    drafter.end(0);
  }
}

std::unique_ptr<StagedDrafter> staged(std::uint32_t seed, int vocabulary, Part cheaper) {
  return std::make_unique<StagedDrafter>(std::make_unique<TableModel>(vocabulary, seed),
                                         std::move(cheaper));
}

std::unique_ptr<RelayDrafter> relay(Parts parts, bool has_draft_prob = true) {
  return std::make_unique<RelayDrafter>(std::move(parts),
                                        DrafterTraits{.has_draft_prob = has_draft_prob});
}

TEST(RelayDrafter, IsExactWhateverGoesOnBehindWhatever) {
  const auto shape = open(3, 8);
  expect_exact(*relay(parts_of(model_part(11, 3, chain_shape(1)), model_part(21, 3, widths({2})))),
               1, shape);
  expect_exact(*relay(parts_of(model_part(12, 3, widths({2})), model_part(22, 3, chain_shape(2)))),
               2, shape);
  expect_exact(
      *relay(parts_of(naming_part(3, 2), model_part(23, 3, chain_shape(1)), naming_part(3, 1)),
             false),
      3, shape);
  expect_exact(*relay(parts_of(model_part(14, 3, chain_shape(1)), naming_part(3, 2)), false), 4,
               chain_shape(3));
}

TEST(RelayDrafter, EachPartDraftsItsLengthBehindTheOneBefore) {
  const auto drafter = relay(
      parts_of(model_part(11, 6, chain_shape(2)), naming_part(6), model_part(21, 6, widths({2}))),
      false);
  CounterChance chance(1);
  Stream stream(0, std::vector<TokenId>{1}, Transform({.temperature = 1}, 6), chance);
  const Context context = stream.context();
  drafter->begin(context);
  for (const auto& [depth, n_nodes, n_drafted] : {std::tuple{9, 20, 6},
                                                  {5, 20, 6},
                                                  {4, 20, 4},
                                                  {3, 20, 3},
                                                  {1, 20, 1},
                                                  {9, 5, 5},
                                                  {0, 9, 0}}) {
    stream.tree.reset(1, 1);
    const auto shape = open(9, 20);
    DraftJob job{.context = &context,
                 .budget = {.depth = depth, .n_nodes = n_nodes},
                 .shape = shape.get(),
                 .chance = &chance,
                 .tree = &stream.tree};
    drafter->propose({&job, 1});
    const DraftTree& tree = stream.tree;
    ASSERT_EQ(tree.n_drafted(), n_drafted);
    for (int node = 1; node <= n_drafted; ++node) {
      EXPECT_EQ(tree.node(node).parent, std::min(node - 1, 4));
      // The naming part drafts the successor of the token before it.
      const bool named = node == 3 || node == 4;
      EXPECT_EQ(tree.node(node).proposal == kPointMass, named);
      if (!named) continue;
      EXPECT_EQ(tree.node(node).token, (tree.node(node - 1).token + 1) % 6);
    }
    Verdict verdict;
    verdict.next = 1;
    const RoundResult result{.context = &context, .tree = &tree, .verdict = &verdict};
    drafter->observe({&result, 1});
  }
}

TEST(RelayDrafter, AnswersWhereNothingMayBeDrafted) {
  // At a text's last place, or where an enclosing drafter uses another part, rules ask the part
  // that would have drafted first.
  const auto drafter =
      relay(parts_of(model_part(11, 6, chain_shape(2)), model_part(21, 6, chain_shape(1))));
  ModelDrafter alone(std::make_unique<TableModel>(6, 11), 6);
  CounterChance chance(1);
  Stream stream(0, std::vector<TokenId>{1, 2, 3}, Transform({.temperature = 1}, 6), chance);
  const Context context = stream.context();
  const auto shape = chain_shape(3);
  const auto dist_of = [&](Drafter& asked, bool proposes) {
    asked.begin(context);
    stream.tree.reset(3, 3);
    DraftJob job{.context = &context,
                 .budget = {},
                 .shape = shape.get(),
                 .chance = &chance,
                 .tree = &stream.tree};
    if (proposes) asked.propose({&job, 1});
    EXPECT_EQ(stream.tree.n_drafted(), 0);
    Distribution dist;
    EXPECT_TRUE(asked.draft_at(context, stream.tree, 0, dist, nullptr));
    asked.end(0);
    return dist;
  };
  const Distribution expected = dist_of(alone, true);
  EXPECT_EQ(dist_of(*drafter, true).probs, expected.probs);
  EXPECT_EQ(dist_of(*drafter, false).probs, expected.probs);
}

class NotedDraws final : public Chance {
 public:
  explicit NotedDraws(Chance& chance) : chance_(&chance) {}
  bool bernoulli(double prob, const Draw& draw) override {
    draws.push_back(draw);
    return chance_->bernoulli(prob, draw);
  }
  TokenId categorical(const Distribution& distribution, const Draw& draw) override {
    draws.push_back(draw);
    return chance_->categorical(distribution, draw);
  }
  std::vector<Draw> draws;

 private:
  Chance* chance_;
};

// A later round may begin at the position where a part drafted in this one; its keys must not come
// up again.
TEST(RelayDrafter, AllDrawsAreTheRoundsOwn) {
  const auto drafter =
      relay(parts_of(model_part(11, 6, chain_shape(2)), model_part(21, 6, widths({2, 1}))));
  CounterChance chance(1);
  NotedDraws noted(chance);
  Stream stream(0, std::vector<TokenId>{1, 2, 3}, Transform({.temperature = 1}, 6), noted);
  const Context context = stream.context();
  drafter->begin(context);
  stream.tree.reset(3, 3);
  const auto shape = open(9, 20);
  DraftJob job{.context = &context,
               .budget = {.depth = 9, .n_nodes = 20},
               .shape = shape.get(),
               .chance = &noted,
               .tree = &stream.tree};
  drafter->propose({&job, 1});
  EXPECT_EQ(stream.tree.n_drafted(), 6);
  ASSERT_EQ(noted.draws.size(), 6U);
  std::set<int> nodes;
  for (const Draw& draw : noted.draws) {
    EXPECT_EQ(draw.position, 3);
    EXPECT_TRUE(nodes.insert(draw.node).second) << draw.node;
  }
}

TEST(StagedDrafter, IsExactWithAnyCheaperDrafter) {
  for (std::uint32_t seed = 1; seed <= 2; ++seed) {
    const auto shape = chain_shape(2);
    expect_exact(*staged(10 + seed, 3, model_part(20 + seed, 3, chain_shape(2))), seed, shape);
    expect_exact(*staged(10 + seed, 3, model_part(20 + seed, 3, widths({2}))), seed, shape);
    expect_exact(*staged(10 + seed, 3, naming_part(3)), seed, shape);
  }
}

TEST(StagedDrafter, IsExactWhereDraftsEndByTheirTokens) {
  const test::ValueStop stop;
  const auto drafter = staged(11, 3, model_part(21, 3, chain_shape(2)));
  for (const auto& acceptance : acceptances()) {
    TableModel target(3, 1);
    Trial trial = trial_of(target, *drafter, *acceptance, chain_shape(3), {.temperature = 1});
    trial.stop = &stop;
    EXPECT_LT(distance(enumerate(trial).dist, target_distribution(trial)), kExact)
        << acceptance->name();
  }
}

TEST(StagedDrafter, DrafterOfADrafterOfADrafter) {
  Part inner{staged(21, 2, model_part(31, 2, chain_shape(1))), chain_shape(2)};
  const auto drafter = staged(11, 2, std::move(inner));
  TableModel target(2, 1);
  const auto acceptance = make_multi_round(kRule);
  Trial trial = trial_of(target, *drafter, *acceptance, chain_shape(2), {.temperature = 1});
  trial.prompt = {0, 1};
  EXPECT_LT(distance(enumerate(trial).dist, target_distribution(trial)), kExact);
}

// The staged drafter's chain follows the distribution of its model alone, so the target accepts as
// many tokens in expectation.
TEST(StagedDrafter, AcceptsWhatTheModelAloneWould) {
  for (std::uint32_t seed = 1; seed <= 4; ++seed) {
    TableModel target(3, seed);
    const auto acceptance = make_multi_round(kRule);
    const auto drafter = staged(10 + seed, 3, model_part(20 + seed, 3, chain_shape(2)));
    ModelDrafter alone(std::make_unique<TableModel>(3, 10 + seed), 3);
    const auto accepted = [&](Drafter& by) {
      return enumerate(trial_of(target, by, *acceptance, chain_shape(2), {.temperature = 1}))
          .accepted_in_first_round;
    };
    EXPECT_NEAR(accepted(*drafter), accepted(alone), kExact);
  }
}

TEST(StagedDrafter, MutantWithTheOuterRoundsKeysIsCaught) {
  const auto outer = [](Draw draw) {
    constexpr int kStride = kMaxDraftNodes + 1;
    if (draw.node >= kStride) draw.node = draw.node / kStride - 1;
    return draw;
  };
  const auto acceptance = make_traversal(kRule);
  double worst = 0;
  for (std::uint32_t seed = 1; seed <= 8; ++seed) {
    const auto drafter = staged(10 + seed, 3, model_part(20 + seed, 3, chain_shape(2)));
    worst = std::max(worst, distance_with(outer, *drafter, *acceptance, chain_shape(3)));
  }
  EXPECT_GT(worst, kCaught);
}

TEST(CompositeDrafters, AnEmptyPartIsNamedByTheSpecItIsIn) {
  for (const char* spec : {"first:,ngram", "first:ngram,", "first:ngram,,suffix", "auto:,ngram",
                           "auto:ngram,", "merge:ngram+", "staged:model:X+", "merge:+",
                           "relay:ngram+", "cascade:exact+model:X+", "first:merge:ngram+,suffix"}) {
    try {
      read_drafter(spec);
      ADD_FAILURE() << spec;
    } catch (const UsageError& error) {
      EXPECT_THAT(error.what(), HasSubstr("expected a drafter as every part, got an empty one"));
      EXPECT_THAT(error.what(),
                  HasSubstr(std::string(spec).starts_with("first:merge") ? "merge:ngram+"
                                                                         : std::string(spec)));
    }
  }
}

// After any number of rounds a composite proposes what a fresh one proposes for the same text.
TEST(CompositeDrafters, KeepInStepWithTheText) {
  const auto make = [](int kind) -> std::unique_ptr<Drafter> {
    const auto shape = open(4, 10);
    switch (kind) {
      case 0:
        return staged(11, 6, model_part(21, 6, chain_shape(2)));
      case 1:
        return staged(11, 6, naming_part(6));
      case 2:
        return std::make_unique<MergeDrafter>(
            parts_of(model_part(11, 6, widths({2, 1, 1})), model_part(21, 6, chain_shape(4))),
            shape);
      case 3:
        return std::make_unique<FirstDrafter>(
            parts_of(naming_part(6, 2), model_part(21, 6, chain_shape(3))), shape, DrafterTraits{});
      case 4: {  // a composite that is not asked in every round
        auto inner = std::make_unique<MergeDrafter>(
            parts_of(naming_part(6), model_part(21, 6, chain_shape(2))), open(2, 4));
        return std::make_unique<FirstDrafter>(
            parts_of(naming_part(6, 2), Part{std::move(inner), open(2, 4)}), shape,
            DrafterTraits{});
      }
      case 5:
        return relay(
            parts_of(model_part(11, 6, chain_shape(2)), model_part(21, 6, widths({2, 1}))));
      case 6:  // parts that keep their own copy of the text
        return relay(
            parts_of(naming_part(6, 2),
                     Part{staged(11, 6, model_part(21, 6, chain_shape(2))), chain_shape(2)}),
            false);
      case 7:    // a relay that is not asked in every round, with parts that must see every round
      case 8: {  // and one that drafts for another drafter
        auto inner =
            relay(parts_of(Part{staged(11, 6, model_part(21, 6, chain_shape(2))), chain_shape(2)},
                           model_part(31, 6, chain_shape(1)), naming_part(6)),
                  false);
        if (kind == 8) return staged(41, 6, Part{std::move(inner), chain_shape(5)});
        return std::make_unique<FirstDrafter>(
            parts_of(naming_part(6, 2), Part{std::move(inner), chain_shape(5)}), shape,
            DrafterTraits{});
      }
      default:
        return staged(11, 6, {staged(21, 6, model_part(31, 6, chain_shape(2))), chain_shape(3)});
    }
  };
  for (int kind = 0; kind < 10; ++kind) {
    for (const char* verify : {"multi-round", "coupled"}) {
      TableModel target(6, 1);
      const auto acceptance =
          verify == std::string("coupled") ? make_coupled(kRule) : make_multi_round(kRule);
      const auto shape = open(4, 10);
      const auto drafter = make(kind);
      Decoder decoder(target, drafter.get(), *acceptance, shape, nullptr);
      std::deque<CounterChance> chances;
      std::deque<Stream> streams;
      std::vector<Stream*> active;
      for (int text = 0; text < 2; ++text) {
        chances.emplace_back(5 + text);
        streams.emplace_back(text, std::vector<TokenId>{0, text, 2},
                             Transform({.temperature = 0.8}, 6), chances.back());
        streams.back().max_total = 80;
        decoder.begin(streams.back());
        active.push_back(&streams.back());
      }
      while (!active.empty()) {
        // The proposal of a fresh drafter for the same text in the same round.
        const auto fresh = make(kind);
        const Stream& first = *active.front();
        const Context context = first.context();
        fresh->begin(context);
        fresh->prefill(context, context.tokens.first(context.tokens.size() - 1), {});
        DraftTree tree;
        tree.reset(first.tokens.back(), static_cast<std::int64_t>(first.tokens.size()));
        const auto left = static_cast<int>(first.max_total) - static_cast<int>(first.tokens.size());
        DraftJob job{.context = &context,
                     .budget = {.depth = std::min(4, left - 1), .n_nodes = 10},
                     .shape = shape.get(),
                     .chance = first.chance,
                     .noise = acceptance->draft_noise(),
                     .tree = &tree};
        fresh->propose({&job, 1});
        decoder.round(active, [](Stream&, const Committed&) { return false; });
        ASSERT_EQ(first.tree.n_nodes(), tree.n_nodes()) << kind << " " << verify;
        for (int node = 1; node < tree.n_nodes(); ++node) {
          ASSERT_EQ(first.tree.node(node).token, tree.node(node).token) << kind << " " << verify;
          ASSERT_EQ(first.tree.node(node).parent, tree.node(node).parent) << kind << " " << verify;
        }
        std::erase_if(active, [](const Stream* stream) { return stream->finished; });
      }
      for (Stream& stream : streams) decoder.end(stream);
    }
  }
}

}  // namespace
}  // namespace outrider
