// SPDX-License-Identifier: Apache-2.0
// The layers of block heads and their Markov heads, compared with a program written from the public
// ones (tests/golden/make/make_block_heads_golden.py), and what a block may read.
#include "train/modules/block_module.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/goldens/golden_heads.h"
#include "tests/support/models/tiny_heads.h"
#include "train/losses/target_tensors.h"
#include "train/modules/markov_module.h"

namespace outrider::train {
namespace {

using nlohmann::json;
using torch::Tensor;
using Form = BlockHeadConfig::Markov::Form;

const json& golden() {
  static const json kGolden = json::parse(
      std::ifstream(std::filesystem::path(OUTRIDER_SOURCE_DIR) / "tests/golden/block_heads.json"));
  return kGolden;
}

// The features are the engine's, in f32 and of order one; block_head_test.cc derives the bound.
constexpr double kTolerance = 1e-5;

double largest_difference(const Tensor& given, const json& expected) {
  const auto rows = expected.get<std::vector<std::vector<double>>>();
  double most = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Tensor row = given[static_cast<std::int64_t>(i)].to(torch::kFloat64);
    most =
        std::max(most, (row - torch::tensor(rows[i], torch::kFloat64)).abs().max().item<double>());
  }
  return most;
}

// The golden head on the golden texts, with all blocks of both texts at once.
class GoldenBlocks : public ::testing::Test {
 protected:
  GoldenBlocks() {
    test::write_hugging_face(test::golden_target(), directory_.path());
    target_ = std::make_shared<Teacher>(directory_.path(), 1);
    const test::TinyShape shape = test::golden_block_shape();
    config_ = target_->config();
    config_.n_layers = 2;
    config_.n_heads = shape.n_heads;
    config_.n_kv_heads = shape.n_kv_heads;
    config_.rope.theta = shape.rope.theta;
    config_.norm_epsilon = 1e-6F;
    head_ = BlockModule(config_, 2, Products::full);
    test::fill_with_golden_values(*head_);

    Batch batch;
    for (const json& text : golden().at("texts")) {
      ++batch.n_sequences;
      batch.length = static_cast<int>(text.size());
      for (const json& token : text) batch.tokens.push_back(token);
    }
    batch.weights.assign(batch.tokens.size(), 1);
    constexpr std::array kStreams = {1, 2};
    const TargetTensors seen(*target_, batch, kStreams, torch::kFloat32);
    features_ = seen.features;
    std::vector<std::int64_t> starts;
    for (const json& text : golden().at("dflash").at("full")) {
      for (const json& block : text) starts.push_back(block.at("start"));
    }
    anchors_ = torch::tensor(starts, torch::kInt64).view({2, 3});
    Tensor read = torch::full({2, 3, kSlots}, golden().at("config").at("mask").get<std::int64_t>(),
                              torch::kInt64);
    read.select(-1, 0).copy_(seen.tokens.gather(1, anchors_));
    shared_ = std::make_unique<SharedMatrices>(*target_);
    slots_ = shared_->embed(read, torch::kFloat32);
  }

  static constexpr int kSlots = 5;

  BlockPlaces places() const {
    return {config_, anchors_, static_cast<int>(features_.size(1)), kSlots, slots_.options()};
  }
  Tensor given(const Tensor& features, const BlockPlaces& places) {
    const torch::NoGradGuard no_grad;
    return head_->forward(slots_, head_->read(features), places);
  }

  // The largest difference between the slots' outputs and that block's golden ones.
  double difference(const Tensor& given, std::int64_t text, std::int64_t block) const {
    return largest_difference(given[text][block], golden()
                                                      .at("dflash")
                                                      .at("full")
                                                      .at(static_cast<std::size_t>(text))
                                                      .at(static_cast<std::size_t>(block))
                                                      .at("hidden"));
  }

  test::TemporaryDirectory directory_;
  std::shared_ptr<Teacher> target_;
  std::unique_ptr<SharedMatrices> shared_;
  ModelConfig config_;
  BlockModule head_{nullptr};
  Tensor features_, anchors_, slots_;
};

TEST_F(GoldenBlocks, GiveWhatTheGoldenProgramGives) {
  const Tensor given = this->given(features_, places());
  const Tensor logits = shared_->logits(given, Products::full);
  for (std::int64_t text = 0; text < 2; ++text) {
    for (std::int64_t block = 0; block < 3; ++block) {
      EXPECT_LT(difference(given, text, block), kTolerance) << text << ", " << block;
      EXPECT_LT(largest_difference(logits[text][block], golden()
                                                            .at("dflash")
                                                            .at("full")
                                                            .at(static_cast<std::size_t>(text))
                                                            .at(static_cast<std::size_t>(block))
                                                            .at("logits")),
                kTolerance)
          << text << ", " << block;
    }
  }
}

// A mutant: blocks that read the target's state at their anchor, which does not exist yet in use.
TEST_F(GoldenBlocks, OneStateMoreIsAnotherHead) {
  BlockPlaces mutant = places();
  mutant.unseen = torch::arange(features_.size(1), torch::kInt64) > anchors_.unsqueeze(-1);
  const Tensor given = this->given(features_, mutant);
  for (std::int64_t text = 0; text < 2; ++text) {
    for (std::int64_t block = 0; block < 3; ++block) {
      EXPECT_GT(difference(given, text, block), 100 * kTolerance) << text << ", " << block;
    }
  }
}

// To the bit: states from the anchor on and other blocks do not affect a block; the state before
// the anchor does.
TEST_F(GoldenBlocks, SeeWhatIsInFrontOfTheirAnchorAlone) {
  const Tensor before = given(features_, places());
  const auto changed = [&](std::int64_t place) {
    Tensor features = features_.clone();
    features.select(1, place) += 1;
    const Tensor after = given(features, places());
    std::vector<bool> changed;
    for (std::int64_t block = 0; block < 3; ++block) {
      changed.push_back(!torch::equal(after.select(1, block), before.select(1, block)));
    }
    return changed;
  };
  using Blocks = std::vector<bool>;
  ASSERT_EQ(anchors_[0][0].item<std::int64_t>(), 9);
  ASSERT_EQ(anchors_[0][1].item<std::int64_t>(), 11);
  ASSERT_EQ(anchors_[0][2].item<std::int64_t>(), 14);
  EXPECT_EQ(changed(8), (Blocks{true, true, true}));
  EXPECT_EQ(changed(9), (Blocks{false, true, true}));
  EXPECT_EQ(changed(10), (Blocks{false, true, true}));
  EXPECT_EQ(changed(11), (Blocks{false, false, true}));
  EXPECT_EQ(changed(13), (Blocks{false, false, true}));
  EXPECT_EQ(changed(14), (Blocks{false, false, false}));

  // Every slot of a block reads every other one, in both directions.
  const Tensor slots = slots_;
  for (std::int64_t slot = 0; slot < kSlots; ++slot) {
    slots_ = slots.clone();
    slots_[0][1][slot] += 1;
    const Tensor after = given(features_, places());
    for (std::int64_t other = 0; other < kSlots; ++other) {
      EXPECT_FALSE(torch::equal(after[0][1][other], before[0][1][other])) << slot << other;
    }
    EXPECT_TRUE(torch::equal(after[0][0], before[0][0]));
    EXPECT_TRUE(torch::equal(after[1], before[1]));
  }
}

// Along the golden program's greedy chains, with given tokens.
TEST_F(GoldenBlocks, MarkovHeadsSayWhatTheGoldenProgramSays) {
  const Tensor given = this->given(features_, places());
  const Tensor plain = shared_->logits(given, Products::full);
  constexpr std::pair<const char*, Form> kForms[] = {
      {"vanilla", Form::vanilla}, {"gated", Form::gated}, {"rnn", Form::recurrent}};
  for (const auto& [name, form] : kForms) {
    SCOPED_TRACE(name);
    MarkovModule markov(form, 4, config_.dim, config_.vocabulary_size, Products::full);
    test::fill_with_golden_values(*markov);
    for (std::int64_t text = 0; text < 2; ++text) {
      const json& expected = golden().at("dspark").at(name).at(static_cast<std::size_t>(text));
      std::vector<std::int64_t> before;
      for (std::size_t block = 0; block < 3; ++block) {
        const auto drafts = expected.at(block).at("drafts").get<std::vector<std::int64_t>>();
        before.push_back(golden()
                             .at("dflash")
                             .at("full")
                             .at(static_cast<std::size_t>(text))
                             .at(block)
                             .at("anchor"));
        before.insert(before.end(), drafts.begin(), drafts.end() - 1);
      }
      const MarkovModuleImpl::Given added =
          markov->forward(given[text], torch::tensor(before, torch::kInt64).view({3, kSlots}));
      for (std::int64_t block = 0; block < 3; ++block) {
        const json& chain = expected.at(static_cast<std::size_t>(block));
        EXPECT_LT(largest_difference(plain[text][block] + added.logits[block], chain.at("logits")),
                  kTolerance);
        EXPECT_LT(largest_difference(added.confidence[block].unsqueeze(0),
                                     json::array({chain.at("confidence_logits")})),
                  kTolerance);
      }
    }
  }
}

}  // namespace
}  // namespace outrider::train
