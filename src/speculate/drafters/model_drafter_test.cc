// SPDX-License-Identifier: Apache-2.0
// After many rounds, a model drafter's state equals that of a drafter that has seen the text alone,
// whatever was accepted, rejected or not proposed.
#include "speculate/drafters/model_drafter.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "model/load_model.h"
#include "sampling/counter_chance.h"
#include "speculate/tree_shapes/dynamic_shape.h"
#include "speculate/tree_shapes/fixed_shape.h"
#include "tests/support/models/tiny_pair.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

struct Text {
  Text(SequenceId text_id, std::vector<TokenId> prompt, const SamplingParams& sampling,
       int vocabulary)
      : id(text_id), tokens(std::move(prompt)), transform(sampling, vocabulary), chance(text_id) {
    history.add_prompt(tokens);
  }
  Context context() const {
    return {.id = id, .tokens = tokens, .history = &history, .transform = &transform};
  }
  SequenceId id;
  std::vector<TokenId> tokens;
  Transform transform;
  TokenHistory history;
  CounterChance chance;
  DraftTree tree;
  Verdict verdict;
};

class ModelDrafterState : public ::testing::Test {
 protected:
  void SetUp() override {
    test::write_tiny_pair(folder_.path());
    reference_ = load_model(folder_.path() / "draft", {.n_threads = 1});
    vocabulary_ = reference_->config().vocabulary_size;
  }

  // The distribution after a node, from a sequence that has run its prefix and nothing else.
  Distribution from_scratch(const Text& text, int node) {
    std::vector<TokenId> prefix = text.tokens;
    std::vector<TokenId> path;
    text.tree.path_tokens(node, path);
    prefix.insert(prefix.end(), path.begin(), path.end());
    const auto sequence = reference_->open({});
    const TokenBlock block{.sequence = sequence.get(), .tokens = prefix, .parents = {}};
    ForwardOutput output;
    reference_->forward({&block, 1}, {.logits = {.kind = RowSet::Kind::last_of_each_block}},
                        output);
    std::vector<float> logits(output.logits_row(0).begin(), output.logits_row(0).end());
    text.transform.penalise(logits, text.history, path);
    Distribution dist;
    text.transform.distribution(logits, dist);
    return dist;
  }

  test::TemporaryDirectory folder_;
  std::unique_ptr<LanguageModel> reference_;
  int vocabulary_ = 0;
};

TEST_F(ModelDrafterState, IsThatOfOneRebuiltFromScratch) {
  std::vector<std::shared_ptr<const TreeShape>> shapes = {
      chain_shape(4), std::make_shared<FixedShape>(widths_tree(std::vector{3, 2, 1})),
      std::make_shared<FixedShape>(eagle1_tree(), Siblings::with_replacement),
      std::make_shared<DynamicShape>(DynamicShape::Limits{.total = 9, .depth = 4, .top_k = 3})};
  ModelDrafter drafter(load_model(folder_.path() / "draft", {.n_threads = 1}), vocabulary_);
  std::mt19937 random(3);
  const auto below = [&random](int n) { return static_cast<int>(random() % n); };
  std::deque<Text> texts;
  texts.emplace_back(1, std::vector<TokenId>{1, 50, 60}, SamplingParams{.temperature = 1},
                     vocabulary_);
  texts.emplace_back(2, std::vector<TokenId>{1, 9, 8, 7, 6, 5},
                     SamplingParams{.temperature = 0.8, .repetition_penalty = 1.3}, vocabulary_);
  texts.emplace_back(3, std::vector<TokenId>{4}, SamplingParams{.temperature = 0}, vocabulary_);
  for (Text& text : texts) drafter.begin(text.context());

  int n_checked = 0;
  int n_accepted = 0;
  for (int round = 0; round < 60; ++round) {
    // A text ends, and another with the same id begins.
    if (round == 30) {
      drafter.end(texts[1].id);
      texts[1].tokens = {1, 2, 3, 4};
      texts[1].history = {};
      texts[1].history.add_prompt(texts[1].tokens);
      drafter.begin(texts[1].context());
    }
    std::vector<Context> contexts;
    for (const Text& text : texts) contexts.push_back(text.context());
    std::vector<DraftJob> jobs;
    for (std::size_t index = 0; index < texts.size(); ++index) {
      Text& text = texts[index];
      text.tree.reset(text.tokens.back(), static_cast<std::int64_t>(text.tokens.size()));
      jobs.push_back({.context = &contexts[index],
                      .budget = {.depth = below(5), .n_nodes = below(4) == 0 ? below(6) : 100},
                      .shape = shapes[static_cast<std::size_t>(below(4))].get(),
                      .chance = &text.chance,
                      .tree = &text.tree});
    }
    drafter.propose(jobs);

    std::vector<RoundResult> results;
    for (Text& text : texts) {
      for (int node = 0; node < text.tree.n_nodes(); ++node) {
        if (text.tree.node(node).draft_prob == kNoDistribution) continue;
        const Distribution& dist = text.tree.distribution(text.tree.node(node).draft_prob);
        const Distribution expected = from_scratch(text, node);
        ASSERT_EQ(dist.ids, expected.ids);
        ASSERT_EQ(dist.probs, expected.probs);
        ++n_checked;
      }
      // Any path, half the time to a leaf, and any next token.
      text.verdict.path.clear();
      for (int node = 0; below(5) != 0;) {
        std::vector<int> children;
        for (int child = text.tree.next_child(node, node); child >= 0;
             child = text.tree.next_child(node, child)) {
          children.push_back(child);
        }
        if (children.empty()) break;
        node = children[static_cast<std::size_t>(below(static_cast<int>(children.size())))];
        text.verdict.path.push_back(node);
      }
      text.verdict.next = below(vocabulary_);
      for (const int node : text.verdict.path) {
        text.tokens.push_back(text.tree.node(node).token);
        text.history.add_generated(text.tokens.back());
        ++n_accepted;
      }
      text.tokens.push_back(text.verdict.next);
      text.history.add_generated(text.verdict.next);
    }
    contexts.clear();
    for (const Text& text : texts) contexts.push_back(text.context());
    for (std::size_t index = 0; index < texts.size(); ++index) {
      results.push_back({.context = &contexts[index],
                         .tree = &texts[index].tree,
                         .verdict = &texts[index].verdict});
    }
    drafter.observe(results);
  }
  for (const Text& text : texts) drafter.end(text.id);
  EXPECT_GT(n_checked, 300);
  EXPECT_GT(n_accepted, 100);
}

// With recent_only, a text's draft equals that of a text of its last tokens; without it, the
// sequence starts again from the first token.
TEST_F(ModelDrafterState, IsThatOfTheLastTokensWhereTheyAreEnough) {
  constexpr std::size_t kRecent = 4;
  ModelDrafter drafter(load_model(folder_.path() / "draft", {.n_threads = 1}), vocabulary_,
                       {.n_recent = kRecent});
  const auto shape = chain_shape(3);
  Text text(1, {1, 50, 60, 9, 8, 7, 6, 5, 4}, SamplingParams{.temperature = 1}, vocabulary_);
  drafter.begin(text.context());
  EXPECT_EQ(drafter.n_behind(text.context()), 8U);
  EXPECT_EQ(drafter.n_behind_recent(text.context()), kRecent - 1);
  // Drafts, keeps the first token, and compares with a text without the first n_skipped tokens.
  const auto draft = [&](bool recent_only, std::size_t n_skipped) {
    Context context = text.context();
    text.tree.reset(text.tokens.back(), static_cast<std::int64_t>(text.tokens.size()));
    DraftJob job{.context = &context,
                 .budget = {.depth = 3, .n_nodes = 3},
                 .shape = shape.get(),
                 .chance = &text.chance,
                 .tree = &text.tree,
                 .recent_only = recent_only};
    drafter.propose({&job, 1});
    ASSERT_EQ(text.tree.n_drafted(), 3);
    std::vector<TokenId> all = text.tokens;
    text.tokens.erase(text.tokens.begin(), text.tokens.begin() + static_cast<int>(n_skipped));
    for (int node = 0; node < 3; ++node) {
      const Distribution& dist = text.tree.distribution(text.tree.node(node).draft_prob);
      EXPECT_EQ(dist.probs, from_scratch(text, node).probs) << node << " behind " << n_skipped;
    }
    text.tokens = std::move(all);
    text.verdict.path = {1};
    text.verdict.next = 3;
    text.tokens.push_back(text.tree.node(1).token);
    text.tokens.push_back(3);
    context = text.context();
    const RoundResult result{.context = &context, .tree = &text.tree, .verdict = &text.verdict};
    drafter.observe({&result, 1});
  };
  draft(true, 5);
  EXPECT_EQ(drafter.n_behind_recent(text.context()), 0U);  // it has run what it drafted
  EXPECT_EQ(drafter.n_behind(text.context()), 10U);
  draft(true, 5);
  // Far behind, it skips tokens again.
  text.tokens.insert(text.tokens.end(), {2, 3, 4, 5, 6});
  EXPECT_EQ(drafter.n_behind_recent(text.context()), kRecent - 1);
  draft(true, 14);
  // Shortened to before its first token, nothing is left. Shortened to after it, the rest is kept.
  text.tokens.resize(16);
  text.tokens.push_back(7);
  drafter.rewind(text.context(), 16);
  draft(true, 14);
  text.tokens.resize(10);
  drafter.rewind(text.context(), 10);
  draft(true, 6);
  draft(false, 0);
  EXPECT_EQ(drafter.n_behind(text.context()), 0U);
  // A sequence that began at the first token is kept.
  text.tokens.insert(text.tokens.end(), {2, 3, 4, 5, 6});
  EXPECT_EQ(drafter.n_behind_recent(text.context()), drafter.n_behind(text.context()));
  draft(true, 0);
  // A later text reuses nothing of an earlier one that skipped tokens; it runs the prompt.
  Text late(2, {1, 50, 60, 9, 8, 7, 6, 5, 4}, SamplingParams{.temperature = 1}, vocabulary_);
  drafter.begin(late.context());
  std::swap(text, late);
  draft(true, 5);
  Text later(3, late.tokens, SamplingParams{.temperature = 1}, vocabulary_);
  drafter.begin_behind(later.context(), 2, 8);
  EXPECT_EQ(drafter.n_behind(later.context()), later.tokens.size() - 1 - 8);
  std::swap(text, later);
  draft(false, 0);
}

}  // namespace
}  // namespace outrider
