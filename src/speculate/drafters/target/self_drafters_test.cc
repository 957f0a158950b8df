// SPDX-License-Identifier: Apache-2.0
// Drafters that are the target itself: specs of layer skipping, and Jacobi decoding's distribution
// by enumeration. tests/real/self_drafting_test.cc checks their drafts on real weights.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "model/load_model.h"
#include "outrider/error.h"
#include "sampling/counter_chance.h"
#include "speculate/decoder.h"
#include "speculate/drafters/target/jacobi_drafter.h"
#include "speculate/registry/drafter_registry.h"
#include "speculate/tree_shapes/fixed_shape.h"
#include "tests/support/goldens/golden_models.h"
#include "tests/support/models/table_model.h"
#include "tests/support/models/tiny_model.h"
#include "tests/support/proofs/enumerated_process.h"
#include "tests/support/proofs/exactness.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

using Layers = std::vector<int>;

// A model that reports five layers.
class FiveLayers final : public LanguageModel {
 public:
  FiveLayers() : table_(3, 1), config_(table_.config()) { config_.n_layers = 5; }
  const ModelConfig& config() const override { return config_; }
  Footprint footprint() const override { return {}; }
  std::unique_ptr<Sequence> open(const Prompt& prompt) override { return table_.open(prompt); }
  void forward(std::span<const TokenBlock> blocks, const ForwardRequest& request,
               ForwardOutput& output) override {
    skipped.assign(request.skip_layers.begin(), request.skip_layers.end());
    table_.forward(blocks, request, output);
  }
  Layers skipped;

 private:
  test::TableModel table_;
  ModelConfig config_;
};

// The layers that the drafter of a spec skips.
Layers skipped_by(const std::string& spec) {
  FiveLayers target;
  const auto drafter = read_drafter(spec).make({.target = &target, .vocabulary_size = 3});
  EXPECT_EQ(drafter->name(), "layerskip");
  EXPECT_TRUE(drafter->traits().has_draft_prob);
  EXPECT_TRUE(drafter->traits().prefix_determined);
  const std::vector<TokenId> prompt = {0, 1, 2};
  const TokenHistory history;
  const Transform transform({}, 3);
  const Context context{.id = 1, .tokens = prompt, .history = &history, .transform = &transform};
  drafter->begin(context);
  drafter->prefill(context, std::span(prompt).first(2), {});
  CounterChance chance(0);
  DraftTree tree;
  tree.reset(2, 3);
  const auto shape = chain_shape(1);
  DraftJob job{.context = &context,
               .budget = {.depth = 1, .n_nodes = 1},
               .shape = shape.get(),
               .chance = &chance,
               .tree = &tree};
  drafter->propose({&job, 1});
  EXPECT_EQ(tree.n_drafted(), 1);
  return target.skipped;
}

// A model in files that counts the rows of its shortened passes.
class CountedModel final : public LanguageModel {
 public:
  CountedModel() {
    test::TinyShape shape;
    shape.seed = 9;
    shape.n_layers = 4;
    test::write_hugging_face(test::make_tiny_model(shape), directory_.path());
    model_ = load_model(directory_.path(), {.n_threads = 1});
  }
  const ModelConfig& config() const override { return model_->config(); }
  Footprint footprint() const override { return model_->footprint(); }
  std::unique_ptr<Sequence> open(const Prompt& prompt) override { return model_->open(prompt); }
  std::unique_ptr<Sequence> fork_without(const Sequence& whole,
                                         std::span<const int> skip_layers) const override {
    return follows ? model_->fork_without(whole, skip_layers) : nullptr;
  }
  void forward(std::span<const TokenBlock> blocks, const ForwardRequest& request,
               ForwardOutput& output) override {
    for (const TokenBlock& block : blocks) {
      if (!request.skip_layers.empty()) n_shortened += static_cast<int>(block.tokens.size());
    }
    model_->forward(blocks, request, output);
  }
  bool follows = true;
  int n_shortened = 0;

 private:
  test::TemporaryDirectory directory_;
  std::unique_ptr<LanguageModel> model_;
};

TEST(Layerskip, AnEarlyExitRunsNothingThatTheTargetHasRun) {
  CountedModel target;
  std::vector<TokenId> prompt;
  for (int token = 0; token < 200; ++token) prompt.push_back(7 * token % 200);
  const auto acceptance = make_multi_round(std::make_shared<ExactRule>());
  struct Texted {
    std::vector<TokenId> tokens;
    std::int64_t accepted = 0;
    int n_rows = 0;
  };
  const auto write = [&](const std::string& spec, bool follows) {
    target.follows = follows;
    target.n_shortened = 0;
    const auto drafter = read_drafter(spec).make(
        {.target = &target, .vocabulary_size = target.config().vocabulary_size});
    Decoder decoder(target, drafter.get(), *acceptance, chain_shape(3), nullptr);
    CounterChance chance(3);
    Stream stream(0, prompt, Transform({.temperature = 1}, target.config().vocabulary_size),
                  chance);
    stream.max_total = 240;
    decoder.begin(stream);
    Stream* const streams[] = {&stream};
    while (!stream.finished) {
      decoder.round(streams, [](Stream&, const Committed&) { return false; });
    }
    decoder.end(stream);
    return Texted{stream.tokens, stream.counts.accepted, target.n_shortened};
  };
  const Texted following = write("layerskip:layers=3", true);
  const Texted alone = write("layerskip:layers=3", false);
  const Texted listed = write("layerskip:skip=3", true);
  // The drafts do not depend on which drafter's pass ran the text before.
  EXPECT_EQ(following.tokens, alone.tokens);
  EXPECT_EQ(following.accepted, alone.accepted);
  EXPECT_EQ(listed.n_rows, following.n_rows);
  EXPECT_GT(following.accepted, 0);
  // A row for each round's root and for every drafted token but the last: three per round if the
  // budget allows; none for the 199 tokens of the prompt.
  const std::int64_t n_rounds = 40 - following.accepted;
  EXPECT_LE(following.n_rows, 3 * n_rounds);
  EXPECT_GE(following.n_rows, 3 * (n_rounds - 3));
  EXPECT_GE(alone.n_rows, 199 + 2 * (n_rounds - 3));
  EXPECT_GT(write("layerskip:skip=2", true).n_rows, 199);
}

TEST(LayerskipSpec, NamesLayersToKeepOrToSkip) {
  EXPECT_EQ(skipped_by("layerskip:layers=3"), (Layers{3, 4}));
  EXPECT_EQ(skipped_by("layerskip:layers=1,confidence=0.4"), (Layers{1, 2, 3, 4}));
  EXPECT_EQ(skipped_by("layerskip:skip=3+1"), (Layers{1, 3}));
  EXPECT_EQ(skipped_by("layerskip:skip=0"), (Layers{0}));
  EXPECT_EQ(read_drafter("layerskip:layers=1,confidence=0.4").confidence, 0.4);
  for (const char* wrong :
       {"layerskip", "layerskip:", "layerskip:3", "layerskip:layers=0", "layerskip:layers=2,skip=1",
        "layerskip:skip=", "layerskip:skip=1+", "layerskip:skip=+1", "layerskip:skip=1+1",
        "layerskip:skip=-1", "layerskip:skip=a", "layerskip:skip=1 ", "layerskip:skip=99999999999",
        "layerskip:depth=2", "layerskip:layers=1,confidence=2"}) {
    EXPECT_THROW(read_drafter(wrong), UsageError) << wrong;
  }
  // Errors that only the target's configuration shows.
  for (const char* wrong : {"layerskip:layers=5", "layerskip:layers=6", "layerskip:skip=5",
                            "layerskip:skip=0+1+2+3+4"}) {
    EXPECT_THROW(skipped_by(wrong), UsageError) << wrong;
  }
}

// Gemma 4's last layers read the keys of earlier ones.
TEST(LayerskipSpec, KeepsLayersWhoseKeysAreRead) {
  const auto target = test::load_f32(test::golden_directory("gemma4_shared"));
  const auto make = [&](const char* spec) {
    return read_drafter(spec).make(
        {.target = target.get(), .vocabulary_size = target->config().vocabulary_size});
  };
  for (const char* wrong : {"layerskip:skip=2", "layerskip:skip=2+5", "layerskip:skip=1+3"}) {
    EXPECT_THROW(make(wrong), UsageError) << wrong;
  }
  for (const char* right :
       {"layerskip:skip=2+4+5", "layerskip:skip=3+6", "layerskip:skip=0+6", "layerskip:layers=2"}) {
    EXPECT_EQ(make(right)->name(), "layerskip") << right;
  }
}

TEST(JacobiSpec, IsAChain) {
  EXPECT_TRUE(read_drafter("jacobi").shape->is_chain());
  EXPECT_EQ(read_drafter("jacobi:length=9").shape->depth(), 9);
  for (const char* wrong : {"jacobi:9", "jacobi:length=0", "jacobi:length=256", "jacobi:k=3"}) {
    EXPECT_THROW(read_drafter(wrong), UsageError) << wrong;
  }
}

TEST(JacobiExactness, TheDistributionIsTheTargets) {
  const auto rule = std::make_shared<ExactRule>();
  for (const auto& acceptance :
       {make_multi_round(rule), make_traversal(rule), make_coupled(rule), make_block(rule)}) {
    for (std::uint32_t seed = 1; seed <= 4; ++seed) {
      for (const auto& [name, sampling] : test::transforms()) {
        test::TableModel target(3, seed);
        JacobiDrafter drafter;
        const test::Trial trial{.target = &target,
                                .drafter = &drafter,
                                .acceptance = acceptance.get(),
                                .shape = chain_shape(2),
                                .sampling = sampling,
                                .prompt = {0, 2},
                                .n_tokens = 5};
        const test::Enumerated enumerated = test::enumerate(trial);
        EXPECT_NEAR(enumerated.weight, 1.0, test::kExact);
        EXPECT_LT(test::distance(enumerated.dist, test::target_distribution(trial)), test::kExact)
            << acceptance->name() << ", " << name;
      }
    }
  }
}

}  // namespace
}  // namespace outrider
