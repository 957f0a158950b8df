// SPDX-License-Identifier: Apache-2.0
// Tests the decode loop with table models: batches, budgets, contexts, and what drafters are told.
#include "speculate/decoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "model/prefill.h"
#include "sampling/counter_chance.h"
#include "speculate/drafters/model_drafter.h"
#include "speculate/tree_shapes/best_shape.h"
#include "speculate/tree_shapes/dynamic_shape.h"
#include "speculate/tree_shapes/fixed_shape.h"
#include "tests/support/models/table_model.h"

namespace outrider {
namespace {

using test::TableModel;

constexpr int kVocabulary = 6;
const std::shared_ptr<const Rule> kRule = std::make_shared<ExactRule>();

bool go_on(Stream&, const Committed&) { return false; }

// A table model that counts the tokens that it runs.
class CountingModel final : public LanguageModel {
 public:
  CountingModel(std::uint32_t seed, int context, std::int64_t& n_tokens)
      : table_(kVocabulary, seed, context), n_tokens_(&n_tokens) {}
  const ModelConfig& config() const override { return table_.config(); }
  Footprint footprint() const override { return {}; }
  std::unique_ptr<Sequence> open(const Prompt& prompt) override { return table_.open(prompt); }
  void forward(std::span<const TokenBlock> blocks, const ForwardRequest& request,
               ForwardOutput& output) override {
    for (const TokenBlock& block : blocks) {
      *n_tokens_ += static_cast<std::int64_t>(block.tokens.size());
    }
    table_.forward(blocks, request, output);
  }

 private:
  TableModel table_;
  std::int64_t* n_tokens_;
};

struct Text {
  std::vector<TokenId> prompt;
  std::uint64_t seed;
  int n_tokens;
  SamplingParams sampling;
};

std::vector<Text> texts() {
  return {{{0}, 1, 12, {.temperature = 1}},
          {{1, 2, 3}, 2, 7, {.temperature = 0}},
          {{5, 4, 3, 2, 1, 0, 1}, 3, 20, {.temperature = 0.8, .top_p = 0.9}},
          {{2, 2}, 4, 1, {.temperature = 1, .repetition_penalty = 1.3}}};
}

// Generates the texts `chosen` together and returns their tokens.
std::vector<std::vector<TokenId>> generate(LanguageModel& target, Drafter* drafter,
                                           const Acceptance& acceptance,
                                           std::shared_ptr<const TreeShape> shape,
                                           const std::vector<Text>& chosen) {
  std::deque<CounterChance> chances;
  std::deque<Stream> streams;
  std::vector<Stream*> active;
  Decoder decoder(target, drafter, acceptance, std::move(shape), nullptr);
  for (const Text& text : chosen) {
    chances.emplace_back(text.seed);
    streams.emplace_back(static_cast<SequenceId>(streams.size()), text.prompt,
                         Transform(text.sampling, kVocabulary), chances.back());
    streams.back().max_total = streams.back().n_prompt + text.n_tokens;
    decoder.begin(streams.back());
    active.push_back(&streams.back());
  }
  while (!active.empty()) {
    decoder.round(active, go_on);
    std::erase_if(active, [](const Stream* stream) { return stream->finished; });
  }
  std::vector<std::vector<TokenId>> tokens;
  for (Stream& stream : streams) {
    decoder.end(stream);
    tokens.push_back(stream.tokens);
  }
  return tokens;
}

std::vector<std::shared_ptr<const TreeShape>> shapes() {
  std::vector<std::shared_ptr<const TreeShape>> all;
  for (const int length : {1, 2, 5, 9}) all.push_back(chain_shape(length));
  for (const Siblings siblings :
       {Siblings::without_replacement, Siblings::with_replacement, Siblings::top_ranks}) {
    all.push_back(std::make_shared<FixedShape>(widths_tree(std::vector{3, 2, 2}), siblings));
    all.push_back(std::make_shared<FixedShape>(eagle1_tree(), siblings));
    all.push_back(std::make_shared<FixedShape>(medusa_tree(), siblings));
  }
  for (const int total : {4, 30}) {
    all.push_back(std::make_shared<DynamicShape>(
        DynamicShape::Limits{.total = total, .depth = 6, .top_k = 4}));
    all.push_back(std::make_shared<BestShape>(BestShape::Limits{.nodes = total, .depth = 6}));
  }
  return all;
}

// With a drafter for one text at a time, a text gives the same tokens in a batch as alone. With
// `coupled` it gives those of plain sampling, whatever the shape.
TEST(Decoder, BatchesAndCouplingChangeNothing) {
  TableModel target(kVocabulary, 1);
  ModelDrafter drafter(std::make_unique<TableModel>(kVocabulary, 2), kVocabulary);
  const auto coupled = make_coupled(kRule);
  const auto plain = generate(target, nullptr, *coupled, nullptr, texts());
  for (const auto& shape : shapes()) {
    EXPECT_EQ(generate(target, &drafter, *coupled, shape, texts()), plain);
    for (const auto& acceptance :
         {make_multi_round(kRule), make_block(kRule), make_traversal(kRule)}) {
      if (acceptance->name() == "block" && !shape->is_chain()) continue;
      const auto together = generate(target, &drafter, *acceptance, shape, texts());
      for (std::size_t index = 0; index < together.size(); ++index) {
        EXPECT_EQ(generate(target, &drafter, *acceptance, shape, {texts()[index]})[0],
                  together[index]);
      }
      EXPECT_EQ(together[1], plain[1]);  // the greedy text
      for (std::size_t index = 0; index < together.size(); ++index) {
        EXPECT_EQ(together[index].size(), texts()[index].prompt.size() + texts()[index].n_tokens);
      }
    }
  }
}

TEST(Decoder, DifferentSeedsGiveDifferentTexts) {
  TableModel target(kVocabulary, 1);
  const auto coupled = make_coupled(kRule);
  Text text{{0}, 1, 30, {.temperature = 1}};
  const auto one = generate(target, nullptr, *coupled, nullptr, {text});
  text.seed = 2;
  EXPECT_NE(generate(target, nullptr, *coupled, nullptr, {text}), one);
}

// The drafter never recomputes accepted tokens: it runs every context token once, except nodes of
// its own that were rejected.
void expect_no_token_run_twice(const std::shared_ptr<const TreeShape>& shape) {
  TableModel target(kVocabulary, 1);
  std::int64_t n_run = 0;
  ModelDrafter drafter(std::make_unique<CountingModel>(2, 1 << 20, n_run), kVocabulary);
  const auto exact = make_multi_round(kRule);
  Decoder decoder(target, &drafter, *exact, shape, nullptr);
  CounterChance chance(5);
  const std::vector<TokenId> prompt = {0, 1, 2};
  Stream stream(0, prompt, Transform({.temperature = 1}, kVocabulary), chance);
  stream.max_total = 200;
  decoder.begin(stream);
  EXPECT_EQ(n_run, 2);
  Stream* const streams[] = {&stream};
  std::int64_t expected = n_run;
  std::int64_t n_cached = n_run;
  while (!stream.finished) {
    const auto n_before = static_cast<std::int64_t>(stream.tokens.size());
    decoder.round(streams, go_on);
    // A node was run if the drafter has its next distribution.
    const auto was_run = [](const DraftNode& node) {
      return node.parent >= 0 && node.draft_prob != kNoDistribution;
    };
    if (stream.tree.n_drafted() > 0) {
      const auto nodes = stream.tree.nodes();
      expected += n_before - n_cached + std::count_if(nodes.begin(), nodes.end(), was_run);
      n_cached = n_before;
      for (const int node : stream.verdict.path)
        n_cached += was_run(stream.tree.node(node)) ? 1 : 0;
    }
    ASSERT_EQ(n_run, expected);
  }
  EXPECT_GT(stream.counts.accepted, 20);
}

TEST(Decoder, DrafterRunsNoAcceptedTokenTwice) {
  expect_no_token_run_twice(chain_shape(4));
  expect_no_token_run_twice(std::make_shared<FixedShape>(widths_tree(std::vector{3, 2, 2})));
  expect_no_token_run_twice(std::make_shared<FixedShape>(eagle1_tree()));
}

// Target and drafter run a prompt step by step; a text cancelled in between leaves nothing behind.
TEST(Decoder, PrefillEndsWhereItIsCancelled) {
  constexpr std::size_t kSteps = 3;
  const Text text{std::vector<TokenId>(kSteps * kPrefillRows + 2, 1), 9, 8, {.temperature = 1}};
  std::int64_t n_target = 0;
  std::int64_t n_drafter = 0;
  CountingModel target(1, 1 << 20, n_target);
  ModelDrafter drafter(std::make_unique<CountingModel>(2, 1 << 20, n_drafter), kVocabulary);
  const auto coupled = make_coupled(kRule);
  const auto plain = generate(target, nullptr, *coupled, nullptr, {text});
  for (int n_steps = 0; n_steps <= static_cast<int>(kSteps); ++n_steps) {
    Decoder decoder(target, &drafter, *coupled, chain_shape(5), nullptr);
    CounterChance chance(text.seed);
    Stream stream(0, text.prompt, Transform(text.sampling, kVocabulary), chance);
    n_target = 0;
    n_drafter = 0;
    int n_asked = 0;
    EXPECT_FALSE(decoder.begin(stream, [&] { return n_asked++ == n_steps; }));
    EXPECT_EQ(n_target, n_steps * kPrefillRows);
    EXPECT_EQ(n_drafter, n_steps * kPrefillRows);
    EXPECT_EQ(stream.sequence->n_kept(), n_steps * kPrefillRows);
    decoder.end(stream);
    EXPECT_EQ(generate(target, &drafter, *coupled, chain_shape(5), {text}), plain);
  }
}

// The target never runs beyond its context, nor the drafter beyond its own; where the drafter's
// ends, plain decoding continues.
TEST(Decoder, ContextsAreRespected) {
  constexpr int kTargetContext = 40;
  constexpr int kDrafterContext = 17;
  std::int64_t n_target = 0;
  std::int64_t n_drafter = 0;
  CountingModel target(1, kTargetContext, n_target);
  ModelDrafter drafter(std::make_unique<CountingModel>(2, kDrafterContext, n_drafter), kVocabulary);
  const auto coupled = make_coupled(kRule);
  for (const std::size_t n_prompt :
       {std::size_t{3}, std::size_t{16}, std::size_t{17}, std::size_t{18}, std::size_t{39}}) {
    const Text text{std::vector<TokenId>(n_prompt, 1),
                    9,
                    kTargetContext - static_cast<int>(n_prompt),
                    {.temperature = 1}};
    const auto plain = generate(target, nullptr, *coupled, nullptr, {text});
    EXPECT_EQ(plain[0].size(), kTargetContext);
    for (const auto& shape : shapes()) {
      EXPECT_EQ(generate(target, &drafter, *coupled, shape, {text}), plain);
    }
  }
  EXPECT_GT(n_drafter, 0);
}

// A drafter with a smaller vocabulary drafts tokens that both know, and nothing after tokens it
// does not know. One with a larger vocabulary never drafts tokens beyond the target's.
TEST(Decoder, VocabulariesOfDifferentSizes) {
  TableModel target(kVocabulary, 1);
  const auto coupled = make_coupled(kRule);
  const auto plain = generate(target, nullptr, *coupled, nullptr, texts());
  for (const int size : {3, kVocabulary, 9}) {
    ModelDrafter drafter(std::make_unique<TableModel>(size, 2), kVocabulary);
    for (const auto& shape : shapes()) {
      EXPECT_EQ(generate(target, &drafter, *coupled, shape, texts()), plain) << size;
    }
  }
  // A bias on a token that only the target has.
  const Text biased{{0}, 1, 12, {.temperature = 1, .logit_bias = {{1, 0.5F}, {5, 1.0F}}}};
  ModelDrafter drafter(std::make_unique<TableModel>(3, 2), kVocabulary);
  for (const auto& shape : shapes()) {
    EXPECT_EQ(generate(target, &drafter, *coupled, shape, {biased}),
              generate(target, nullptr, *coupled, nullptr, {biased}));
  }
}

// A commit that returns stop ends the text at that token, also in the middle of a draft.
TEST(Decoder, StopsWhereTheCommitSays) {
  TableModel target(kVocabulary, 1);
  ModelDrafter drafter(std::make_unique<TableModel>(kVocabulary, 1), kVocabulary);  // all accepted
  const auto coupled = make_coupled(kRule);
  Decoder decoder(target, &drafter, *coupled, chain_shape(5), nullptr);
  CounterChance chance(1);
  const std::vector<TokenId> prompt = {0};
  Stream stream(0, prompt, Transform({.temperature = 1}, kVocabulary), chance);
  stream.max_total = 100;
  decoder.begin(stream);
  Stream* const streams[] = {&stream};
  int n_seen = 0;
  decoder.round(streams, [&](Stream&, const Committed& committed) {
    EXPECT_EQ(committed.node, n_seen + 1);
    EXPECT_EQ(committed.logits_node, n_seen);
    return ++n_seen == 3;
  });
  EXPECT_TRUE(stream.finished);
  EXPECT_EQ(n_seen, 3);
  EXPECT_EQ(stream.tokens.size(), 4U);
  EXPECT_EQ(stream.counts.accepted, 3);
}

// Each text gets the same tokens as in rounds of its own, whatever the others' lengths. One that is
// finished before the call or by `before` takes no part in the round.
TEST(Decoder, RunsAllStreamsToTheirEnds) {
  TableModel target(kVocabulary, 1);
  ModelDrafter drafter(std::make_unique<TableModel>(kVocabulary, 2), kVocabulary);
  const auto coupled = make_coupled(kRule);
  Decoder decoder(target, &drafter, *coupled, chain_shape(3), nullptr);
  const std::vector<TokenId> prompt = {0, 1};
  std::deque<CounterChance> chances;
  std::deque<Stream> streams;
  std::vector<Stream*> active;
  const std::vector<std::int64_t> lengths = {5, 20, 0, 30};
  for (const std::int64_t length : lengths) {
    Stream& stream = streams.emplace_back(static_cast<SequenceId>(streams.size()), prompt,
                                          Transform({.temperature = 1}, kVocabulary),
                                          chances.emplace_back(streams.size()));
    stream.max_total = stream.n_prompt + length;
    stream.finished = length == 0;
    decoder.begin(stream);
    active.push_back(&stream);
  }
  std::vector<std::vector<SequenceId>> asked;
  std::vector<std::vector<SequenceId>> run;
  const auto ids = [](std::span<Stream* const> round) {
    std::vector<SequenceId> ids;
    for (const Stream* stream : round) ids.push_back(stream->id);
    return ids;
  };
  RoundHooks hooks;
  hooks.before = [&](std::span<Stream* const> round) {
    asked.push_back(ids(round));
    for (Stream* stream : round) {
      if (stream->id == 3 && asked.size() == 2) stream->finished = true;
    }
  };
  hooks.after = [&](std::span<Stream* const> round, const RoundTimes&) {
    run.push_back(ids(round));
  };
  decoder.run_to_end(active, go_on, hooks);
  EXPECT_TRUE(active.empty());
  ASSERT_GT(asked.size(), 2U);
  EXPECT_EQ(asked.size(), run.size());
  EXPECT_EQ(asked[0], (std::vector<SequenceId>{0, 1, 3}));
  EXPECT_EQ(run[0], asked[0]);
  EXPECT_EQ(asked[1].back(), 3);
  EXPECT_NE(run[1].back(), 3);
  EXPECT_EQ(run.back(), std::vector<SequenceId>{1});
  for (const std::size_t index : {0, 1, 2}) {
    EXPECT_EQ(static_cast<std::int64_t>(streams[index].tokens.size()), 2 + lengths[index]);
    if (lengths[index] == 0) continue;
    CounterChance chance(index);
    Stream alone(9, prompt, Transform({.temperature = 1}, kVocabulary), chance);
    alone.max_total = alone.n_prompt + lengths[index];
    decoder.begin(alone);
    Stream* const one[] = {&alone};
    while (!alone.finished) decoder.round(one, go_on);
    EXPECT_EQ(streams[index].tokens, alone.tokens);
  }
  EXPECT_LT(streams[3].tokens.size(), 32U);
}

}  // namespace
}  // namespace outrider
