// SPDX-License-Identifier: Apache-2.0
// Tests the loop over levels with subclasses that record the calls.
#include "speculate/drafters/levelwise_drafter.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sampling/counter_chance.h"
#include "speculate/tree_shapes/fixed_shape.h"

namespace outrider {
namespace {

constexpr int kVocabulary = 8;

// After a token t the likeliest are t + 1, t + 2 and so on, modulo 6. The two tokens beyond these,
// which only this drafter knows, are the likeliest of all. With rows per draft, the level replaces
// the token.
class Recorder final : public LevelwiseDrafter {
 public:
  explicit Recorder(RowPer row_per) : LevelwiseDrafter(6), row_per_(row_per) {}

  std::string_view name() const override { return "recorder"; }
  DrafterTraits traits() const override { return {.has_draft_prob = true}; }
  void begin(const Context&) override {}
  void observe(std::span<const RoundResult>) override {}
  void end(SequenceId) override {}

  std::map<SequenceId, int> depths;                   // results of prepare(); 3 if not listed
  std::vector<std::vector<SequenceId>> levels;        // the drafts of each level
  std::vector<std::pair<SequenceId, int>> completed;  // each draft, and the levels run before
  std::vector<std::vector<int>> by_node;              // for each complete draft, renumbered
  bool has_rows = true;

 private:
  int prepare(const DraftJob& job) override {
    const auto at = depths.find(job.context->id);
    return at == depths.end() ? 3 : at->second;
  }
  RowPer run_level(int level, std::span<const Growing> drafts) override {
    EXPECT_EQ(level, static_cast<int>(levels.size()));
    std::vector<SequenceId>& ids = levels.emplace_back();
    rows_.clear();
    for (const Growing& draft : drafts) {
      ids.push_back(draft.context().id);
      EXPECT_FALSE(draft.frontier().empty());
      std::vector<int>& grown = grown_[draft.context().id];
      for (const int node : draft.frontier()) {
        EXPECT_EQ(draft.tree().node(node).depth, level);
        grown.resize(static_cast<std::size_t>(draft.tree().n_nodes()), -1);
        grown[static_cast<std::size_t>(node)] = draft.tree().node(node).token;
        if (row_per_ == RowPer::node) rows_.push_back(draft.tree().node(node).token);
      }
      if (row_per_ == RowPer::draft) rows_.push_back(level);
    }
    fill();
    return row_per_;
  }
  void complete(const Growing& draft) override {
    completed.emplace_back(draft.context().id, static_cast<int>(levels.size()));
    std::vector<int>& grown = grown_[draft.context().id];
    draft.growth->renumber(grown);
    by_node.push_back(grown);
    for (int node = 0; node < draft.tree().n_nodes(); ++node) {
      const int token = grown[static_cast<std::size_t>(node)];
      if (token >= 0) {
        EXPECT_EQ(token, draft.tree().node(node).token);
      }
    }
  }
  bool run_node(const Context&, const DraftTree& tree, int node) override {
    if (!has_rows) return false;
    rows_ = {tree.node(node).token};
    fill();
    return true;
  }
  void fill() {
    float* logits = output().logits.start_pass(static_cast<int>(rows_.size()), kVocabulary);
    for (const int key : rows_) {
      for (int token = 0; token < kVocabulary; ++token) {
        const int behind = (token - key - 1 + 12) % 6;
        *logits++ = token < 6 ? static_cast<float>(-behind) : 9.0F;
      }
    }
  }

  RowPer row_per_;
  std::vector<int> rows_;
  std::map<SequenceId, std::vector<int>> grown_;

 public:
  static constexpr RowPer kPerNode = RowPer::node;
  static constexpr RowPer kPerDraft = RowPer::draft;
};

// Texts 0, 1 and 2 with these last tokens.
class Levelwise : public ::testing::Test {
 protected:
  static constexpr std::array<TokenId, 3> kRoots = {0, 2, 5};

  // Drafts the likeliest tokens in a tree of these widths.
  void propose(Recorder& drafter, const std::vector<int>& widths, double temperature = 0) {
    const FixedShape shape(widths_tree(widths));
    transform_.emplace(SamplingParams{.temperature = temperature}, 6);
    CounterChance chance(1);
    std::vector<DraftJob> jobs;
    for (std::size_t text = 0; text < kRoots.size(); ++text) {
      contexts_[text] = {.id = static_cast<SequenceId>(text),
                         .tokens = {&kRoots[text], 1},
                         .history = &history_,
                         .transform = &*transform_};
      trees_[text].reset(kRoots[text], 1);
      jobs.push_back({.context = &contexts_[text],
                      .budget = {.depth = 10, .n_nodes = 60},
                      .shape = &shape,
                      .chance = &chance,
                      .tree = &trees_[text]});
    }
    drafter.propose(jobs);
  }
  std::vector<TokenId> drafted(std::size_t text) const {
    std::vector<TokenId> tokens;
    for (int node = 1; node < trees_[text].n_nodes(); ++node) {
      tokens.push_back(trees_[text].node(node).token);
    }
    return tokens;
  }

  TokenHistory history_;
  std::optional<Transform> transform_;
  std::array<Context, 3> contexts_;
  std::array<DraftTree, 3> trees_;
};

using Ids = std::vector<SequenceId>;
using Tokens = std::vector<TokenId>;

TEST_F(Levelwise, GrowsEachDraftFromItsOwnRows) {
  Recorder drafter(Recorder::kPerNode);
  propose(drafter, {2, 1});
  EXPECT_EQ(drafted(0), (Tokens{1, 2, 2, 3}));
  EXPECT_EQ(drafted(1), (Tokens{3, 4, 4, 5}));
  EXPECT_EQ(drafted(2), (Tokens{0, 1, 1, 2}));
  EXPECT_EQ(drafter.levels, (std::vector<Ids>{{0, 1, 2}, {0, 1, 2}}));
  EXPECT_EQ(drafter.n_passes(), 2);
}

TEST_F(Levelwise, OneRowMayServeAllNodesOfADraft) {
  Recorder drafter(Recorder::kPerDraft);
  propose(drafter, {2, 2});
  for (const std::size_t text : {0, 1, 2}) {
    EXPECT_EQ(drafted(text), (Tokens{1, 2, 2, 3, 2, 3})) << text;
  }
}

// A text that may draft nothing is never run, and a complete one is run no more.
TEST_F(Levelwise, RunsWhatStillGrows) {
  Recorder drafter(Recorder::kPerNode);
  drafter.depths = {{0, 1}, {1, 0}, {2, 3}};
  propose(drafter, {1, 1, 1, 1});
  EXPECT_EQ(drafted(0), Tokens{1});
  EXPECT_EQ(drafted(1), Tokens{});
  EXPECT_EQ(drafted(2), (Tokens{0, 1, 2}));
  EXPECT_EQ(drafter.levels, (std::vector<Ids>{{0, 2}, {2}, {2}}));
  EXPECT_EQ(drafter.completed, (std::vector<std::pair<SequenceId, int>>{{0, 1}, {2, 3}}));
  EXPECT_EQ(drafter.by_node,
            (std::vector<std::vector<int>>{{0, -1}, {5, 0, 1, -1}}));  // the last level is not run
  EXPECT_EQ(drafter.n_passes(), 3);

  drafter.depths = {{0, 0}, {1, -1}, {2, 0}};
  drafter.levels.clear();
  propose(drafter, {1});
  EXPECT_TRUE(drafter.levels.empty());
  EXPECT_EQ(drafter.n_passes(), 3);
}

TEST_F(Levelwise, SaysWhatFollowsANodeWithoutDistribution) {
  Recorder drafter(Recorder::kPerNode);
  propose(drafter, {1, 1}, 1);
  const int leaf = trees_[0].n_nodes() - 1;
  Distribution draft;
  Distribution raw;
  ASSERT_TRUE(drafter.draft_at(contexts_[0], trees_[0], leaf, draft, &raw));
  EXPECT_EQ(draft.ids.size(), 6U);  // none of the tokens that only the drafter knows
  const TokenId next = (trees_[0].node(leaf).token + 1) % 6;
  for (TokenId token = 0; token < 6; ++token) {
    EXPECT_LE(draft.prob(token), draft.prob(next));
    EXPECT_EQ(raw.prob(token), draft.prob(token));
  }
  EXPECT_EQ(drafter.n_passes(), 3);
  drafter.has_rows = false;
  EXPECT_FALSE(drafter.draft_at(contexts_[0], trees_[0], leaf, draft, nullptr));
  EXPECT_EQ(drafter.n_passes(), 3);
}

}  // namespace
}  // namespace outrider
