// SPDX-License-Identifier: Apache-2.0
// Tests which part of an auto: drafter drafts in a round.
#include "speculate/drafters/composite/auto_drafter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "outrider/error.h"
#include "sampling/counter_chance.h"
#include "speculate/drafters/lookup/ngram_drafter.h"
#include "speculate/registry/drafter_registry.h"
#include "speculate/tree_shapes/fixed_shape.h"
#include "speculate/tree_shapes/open_shape.h"

namespace outrider {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Tokens = std::vector<TokenId>;

constexpr TokenId kModelToken = 99;

// Drafts the same token to the full depth, like a model that costs one pass per level.
class ModelLike final : public Drafter {
 public:
  std::string_view name() const override { return "like"; }
  DrafterTraits traits() const override { return {}; }
  bool catches_up() const override { return true; }
  void begin(const Context&) override {}
  void prefill(const Context&, std::span<const TokenId>, const FeatureRows&) override {
    ++n_prefilled;
  }
  void propose(std::span<DraftJob> jobs) override {
    for (const DraftJob& job : jobs) {
      ++n_asked;
      for (int i = 0; i < job.budget.depth; ++i) {
        job.tree->add_child(i, kModelToken, kPointMass);
      }
    }
  }
  void observe(std::span<const RoundResult>) override {}
  void end(SequenceId) override {}
  std::int64_t n_passes() const override { return 0; }

  int n_asked = 0;
  int n_prefilled = 0;
};

// A node gains its certainty minus a price.
class PricedWorth final : public DraftWorth {
 public:
  explicit PricedWorth(double price) : price_(price) {}
  double stands(double certainty) const override { return certainty; }
  double price(int /*n*/) const override { return price_; }
  void drafted(double certainty) override { certainties.push_back(certainty); }
  void refused(int /*parent*/, TokenId /*token*/, double /*certainty*/) override {}
  double gain(const DraftTree& tree) const override {
    double gained = 0;
    double survival = 1;
    for (int node = 0; node < tree.n_drafted(); ++node) {
      survival *= certainties[static_cast<std::size_t>(node)];
      gained += survival - price_;
    }
    return gained;
  }
  void withdraw(const DraftTree& /*tree*/) override { ++n_withdrawn; }

  std::vector<double> certainties;
  int n_withdrawn = 0;

 private:
  double price_;
};

class AutoDrafters : public ::testing::Test {
 protected:
  AutoDrafters() {
    std::vector<CompositeDrafter::Part> parts;
    auto like = std::make_unique<ModelLike>();
    like_ = like.get();
    parts.push_back({std::move(like), chain_shape(5)});
    parts.push_back({std::make_unique<NgramDrafter>(
                         NgramDrafter::Options{.shortest = 1, .longest = 3, .length = 3}),
                     chain_shape(3)});
    drafter_ = std::make_unique<AutoDrafter>(std::move(parts), shape_, DrafterTraits{});
  }

  Tokens draft(const Tokens& text, DraftChoice* choice) {
    const Transform transform({.temperature = 0}, 1000);
    const TokenHistory history;
    const Context context{.id = 1, .tokens = text, .history = &history, .transform = &transform};
    CounterChance chance(1);
    DraftTree tree;
    tree.reset(text.back(), static_cast<std::int64_t>(text.size()));
    DraftJob job{.context = &context,
                 .budget = {.depth = 8, .n_nodes = 8},
                 .shape = shape_.get(),
                 .choice = choice,
                 .chance = &chance,
                 .tree = &tree};
    drafter_->begin(context);
    drafter_->prefill(context, context.tokens.first(text.size() - 1), {});
    drafter_->propose({&job, 1});
    drafter_->end(1);
    Tokens drafted;
    for (int node = 1; node < tree.n_nodes(); ++node) drafted.push_back(tree.node(node).token);
    return drafted;
  }

  // The certainties of the draft: 3/4, times 4/5, times 5/6: 0.75, 0.6, 0.5.
  const Tokens repeats_ = {7, 8, 9, 1, 2, 3, 4, 7, 8, 9};
  const Tokens new_ = {1, 2, 3};
  std::shared_ptr<const TreeShape> shape_ = std::make_shared<OpenShape>(8, 8);
  ModelLike* like_ = nullptr;
  std::unique_ptr<AutoDrafter> drafter_;
};

TEST_F(AutoDrafters, WithoutAChoiceTheFirstDraftIsTaken) {
  EXPECT_THAT(draft(repeats_, nullptr), ElementsAre(1, 2, 3));
  EXPECT_EQ(like_->n_asked, 0);
  EXPECT_EQ(draft(new_, nullptr), Tokens(5, kModelToken));
}

TEST_F(AutoDrafters, WhatIsLookedUpIsTakenWhereItGainsMore) {
  PricedWorth worth(0.1);
  DraftChoice choice{.part = 0, .depth = 2, .floor = 1.5, .worths = {nullptr, &worth}};
  // Gains 0.75 + 0.6 + 0.5 - 3 * 0.1 = 1.85 - 0.3.
  EXPECT_THAT(draft(repeats_, &choice), ElementsAre(1, 2, 3));
  EXPECT_EQ(choice.taken, 1);
  EXPECT_EQ(like_->n_asked, 0);
  EXPECT_EQ(worth.n_withdrawn, 0);
}

TEST_F(AutoDrafters, OrElseTheChosenPartDrafts) {
  PricedWorth worth(0.1);
  DraftChoice choice{.part = 0, .depth = 2, .floor = 1.6, .worths = {nullptr, &worth}};
  EXPECT_EQ(draft(repeats_, &choice), Tokens(2, kModelToken));
  EXPECT_EQ(choice.taken, 0);
  EXPECT_EQ(worth.n_withdrawn, 1);
}

TEST_F(AutoDrafters, WhereNonePaysThereIsNoDraft) {
  PricedWorth worth(0.9);
  DraftChoice choice{.worths = {nullptr, &worth}};
  EXPECT_THAT(draft(repeats_, &choice), IsEmpty());
  EXPECT_EQ(choice.taken, DraftChoice::kNone);
  EXPECT_EQ(like_->n_asked, 0);
}

// A part that never drafts is not shown the prompt.
TEST_F(AutoDrafters, PartsThatCatchUpAreNotShownThePrompt) {
  PricedWorth worth(0.1);
  DraftChoice choice{.worths = {nullptr, &worth}};
  draft(new_, &choice);
  EXPECT_EQ(like_->n_prefilled, 0);
  EXPECT_TRUE(drafter_->catches_up());
}

TEST(AutoDrafterSpecs, HaveNoPartsOrAtLeastTwo) {
  EXPECT_NO_THROW(read_drafter("auto"));
  EXPECT_THROW(read_drafter("auto:"), UsageError);
  EXPECT_THROW(read_drafter("auto:suffix"), UsageError);
  EXPECT_NO_THROW(read_drafter("auto:suffix,ngram"));
}

}  // namespace
}  // namespace outrider
