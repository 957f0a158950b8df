// SPDX-License-Identifier: Apache-2.0
// Scratch nodes change neither the output's distribution, by enumeration, nor a single verdict for
// a given seed. Their tokens here are the worst case: drawn with the verifier's own random numbers,
// so that judging one of them would be noticed.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "outrider/error.h"
#include "sampling/counter_chance.h"
#include "speculate/drafters/forwarding_drafter.h"
#include "speculate/drafters/model_drafter.h"
#include "speculate/rules/make_rule.h"
#include "speculate/tree_shapes/fixed_shape.h"
#include "tests/support/proofs/enumerated_process.h"
#include "tests/support/proofs/exactness.h"

namespace outrider {
namespace {

using test::distance;
using test::enumerate;
using test::kCaught;
using test::kExact;
using test::TableModel;
using test::target_distribution;
using test::transforms;
using test::Trial;

const std::shared_ptr<const Rule> kRule = std::make_shared<ExactRule>();

// Adds further nodes to a drafter's drafts: tokens that guess the verifier's draws, copies of
// drafted ones, and a chain as deep as allowed.
class WithScratch final : public ForwardingDrafter {
 public:
  enum class Kind { scratch, judged };
  WithScratch(Drafter& drafter, TableModel& target, Kind kind)
      : ForwardingDrafter(drafter), target_(&target), kind_(kind) {}
  std::string_view name() const override { return "with scratch"; }
  void propose(std::span<DraftJob> jobs) override {
    inner().propose(jobs);
    for (DraftJob& job : jobs) add_nodes(job);
  }
  bool draft_at(const Context& context, const DraftTree& tree, int node, Distribution& draft_prob,
                Distribution* raw_draft) override {
    EXPECT_LE(node, tree.n_drafted());
    return inner().draft_at(context, tree, node, draft_prob, raw_draft);
  }
  // The target has run every node; its rows equal those of a pass over that text.
  void observe(std::span<const RoundResult> results) override {
    for (const RoundResult& result : results) {
      for (int node = 0; node < result.tree->n_nodes(); ++node) {
        const auto row = result.target_logits(node).values();
        const std::vector<float>& expected =
            target_->logits(text_behind(*result.tree, node, before_.at(result.context->id)));
        EXPECT_TRUE(std::equal(row.begin(), row.end(), expected.begin(), expected.end()));
      }
    }
    inner().observe(results);
  }

 private:
  static std::vector<TokenId> text_behind(const DraftTree& tree, int node,
                                          std::vector<TokenId> text) {
    std::vector<TokenId> path;
    tree.path_tokens(node, path);
    text.insert(text.end(), path.begin(), path.end());
    return text;
  }

  void add(DraftTree& tree, int parent, TokenId token, int deepest) {
    if (tree.node(parent).depth >= deepest) return;
    if (kind_ == Kind::judged) {
      tree.add_child(parent, token, kPointMass);
    } else {
      tree.add_scratch(parent, token);
    }
  }

  void add_nodes(DraftJob& job) {
    DraftTree& tree = *job.tree;
    before_[job.context->id].assign(job.context->tokens.begin(), job.context->tokens.end());
    const int deepest = kind_ == Kind::judged ? job.budget.depth : job.budget.scratch_depth;
    const int n_drafted = tree.n_drafted();
    for (int node = 0; node <= n_drafted; ++node) {
      std::vector<float> logits =
          target_->logits(text_behind(tree, node, before_.at(job.context->id)));
      std::vector<TokenId> path;
      tree.path_tokens(node, path);
      job.context->transform->penalise(logits, *job.context->history, path);
      Distribution dist;
      job.context->transform->distribution(logits, dist);
      for (const Purpose purpose : {Purpose::bonus, Purpose::residual}) {
        add(tree, node, job.chance->categorical(dist, {tree.n_committed(), node, purpose}),
            deepest);
      }
    }
    for (int node = 1; node <= n_drafted; ++node) {
      add(tree, tree.node(node).parent, tree.node(node).token, deepest);
    }
    for (int n = 0; n < 3; ++n) add(tree, tree.n_nodes() - 1, 1, deepest);
  }

  TableModel* target_;
  Kind kind_;
  std::map<SequenceId, std::vector<TokenId>> before_;  // each text at its last draft
};

// The whole shape with the first round enumerated, or three tokens with all rounds enumerated.
double distance_to_target(const Acceptance& acceptance,
                          const std::shared_ptr<const TreeShape>& shape,
                          const SamplingParams& sampling, WithScratch::Kind kind, int seed,
                          bool all_rounds) {
  TableModel target(3, static_cast<std::uint32_t>(2 * seed));
  ModelDrafter inner(std::make_unique<TableModel>(3, static_cast<std::uint32_t>(2 * seed + 1)), 3);
  WithScratch drafter(inner, target, kind);
  const Trial trial{.target = &target,
                    .drafter = &drafter,
                    .acceptance = &acceptance,
                    .shape = shape,
                    .sampling = sampling,
                    .prompt = {0, 2},
                    .n_tokens = all_rounds ? 3 : shape->depth() + 1,
                    .first_round_only = !all_rounds};
  const test::Enumerated enumerated = enumerate(trial);
  EXPECT_NEAR(enumerated.weight, 1.0, kExact);
  return distance(enumerated.dist, target_distribution(trial));
}

std::vector<std::shared_ptr<const TreeShape>> small_trees() {
  return {chain_shape(0), chain_shape(2), std::make_shared<FixedShape>(std::vector{2})};
}

TEST(ScratchExactness, TheDistributionIsTheTargets) {
  for (const auto& acceptance :
       {make_multi_round(kRule), make_traversal(kRule), make_coupled(kRule), make_block(kRule)}) {
    for (const auto& shape : small_trees()) {
      if (acceptance->chains_only() && !shape->is_chain()) continue;
      for (const auto& [name, sampling] : transforms()) {
        EXPECT_LT(
            distance_to_target(*acceptance, shape, sampling, WithScratch::Kind::scratch, 3, false),
            kExact)
            << acceptance->name() << ", " << name << ", depth " << shape->depth();
      }
    }
    EXPECT_LT(distance_to_target(*acceptance, chain_shape(1), {.temperature = 1},
                                 WithScratch::Kind::scratch, 3, true),
              kExact);
  }
}

TEST(ScratchMutants, AScratchNodeThatIsJudgedIsCaught) {
  for (const auto& acceptance : {make_multi_round(kRule), make_traversal(kRule)}) {
    double worst = 0;
    for (int seed = 1; seed <= 3; ++seed) {
      worst = std::max(worst, distance_to_target(*acceptance, chain_shape(1), {.temperature = 1},
                                                 WithScratch::Kind::judged, seed, true));
    }
    EXPECT_GT(worst, kCaught) << acceptance->name();
  }
  EXPECT_THROW(distance_to_target(*make_block(kRule), chain_shape(1), {.temperature = 1},
                                  WithScratch::Kind::judged, 1, true),
               Error);
}

struct Told {
  std::vector<std::vector<TokenId>> tokens;
  std::vector<std::vector<int>> paths;
  std::int64_t drafted = 0;
  std::int64_t accepted = 0;
  double rule_kl = 0;
  bool operator==(const Told&) const = default;
};

// Three texts together, the second near the end of the target's context.
Told run(const Acceptance& acceptance, const std::shared_ptr<const TreeShape>& shape,
         const SamplingParams& sampling, bool scratch, std::uint64_t seed) {
  constexpr int kVocabulary = 5;
  TableModel target(kVocabulary, 6, 16);
  ModelDrafter inner(std::make_unique<TableModel>(kVocabulary, 7), kVocabulary);
  WithScratch with(inner, target, WithScratch::Kind::scratch);
  Drafter& drafter = scratch ? static_cast<Drafter&>(with) : inner;
  Decoder decoder(target, &drafter, acceptance, shape, nullptr);
  std::deque<CounterChance> chances;
  std::deque<Stream> streams;
  std::vector<Stream*> active;
  for (const std::vector<TokenId>& prompt :
       std::vector<std::vector<TokenId>>{{0}, {1, 2, 3, 4, 3, 2, 1, 0, 1}, {4, 4}}) {
    chances.emplace_back(seed + streams.size());
    streams.emplace_back(static_cast<SequenceId>(streams.size()), prompt,
                         Transform(sampling, kVocabulary), chances.back());
    streams.back().max_total = streams.size() == 2 ? 16 : streams.back().n_prompt + 11;
    decoder.begin(streams.back());
    active.push_back(&streams.back());
  }
  Told told;
  while (!active.empty()) {
    decoder.round(active, [](Stream&, const Committed&) { return false; });
    for (const Stream* stream : active) told.paths.push_back(stream->verdict.path);
    std::erase_if(active, [](const Stream* stream) { return stream->finished; });
  }
  for (Stream& stream : streams) {
    decoder.end(stream);
    told.tokens.push_back(stream.tokens);
    told.drafted += stream.counts.drafted;
    told.accepted += stream.counts.accepted;
    told.rule_kl += stream.counts.rule_cost.kl;
  }
  return told;
}

TEST(ScratchExactness, EveryVerdictIsTheOneWithoutThem) {
  struct Judge {
    const char* rule;
    const char* verify;
    double temperature;
  };
  const std::vector<Judge> judges = {{"exact", "exact", 1},
                                     {"exact", "block", 1},
                                     {"exact", "traversal", 1},
                                     {"exact", "coupled", 1},
                                     {"exact", "exact", 0},
                                     {"chow:alpha=0.2", "exact", 1},
                                     {"chow:alpha=0.2,bonus=target", "exact", 1},
                                     {"budget:kl=0.3", "traversal", 1},
                                     {"typical", "exact", 1},
                                     {"bild", "exact", 0},
                                     {"fly:entropy=0,window=1", "exact", 1}};
  for (const Judge& judge : judges) {
    const Verification verification = make_verification(judge.rule, judge.verify);
    for (const auto& shape : std::vector<std::shared_ptr<const TreeShape>>{
             chain_shape(4), std::make_shared<FixedShape>(widths_tree(std::vector{2, 2, 1}))}) {
      if (verification.acceptance->chains_only() && !shape->is_chain()) continue;
      for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        const SamplingParams sampling{.temperature = judge.temperature};
        EXPECT_EQ(run(*verification.acceptance, shape, sampling, true, seed),
                  run(*verification.acceptance, shape, sampling, false, seed))
            << judge.rule << " " << judge.verify << " seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace outrider
