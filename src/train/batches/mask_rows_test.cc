// SPDX-License-Identifier: Apache-2.0
// Which mask rows a text gets and what they read. A row among others gives the same output as in a
// pass of its own.
#include "train/batches/mask_rows.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <set>

#include "train/modules/llama_module.h"

namespace outrider::train {
namespace {

using torch::Tensor;

constexpr int kTokens = 20;

std::int64_t at(const Tensor& x, std::int64_t i) { return x[i].item<std::int64_t>(); }

TEST(MaskRows, EachDepthKeepsAShareOfTheDepthBefore) {
  torch::manual_seed(3);
  const MaskRows rows(kTokens, {.n_drafted = 5, .keep = 0.7, .min_share = 0.3});
  std::map<std::int64_t, std::set<std::int64_t>> anchors;
  for (std::int64_t i = 0; i < rows.size(); ++i) {
    EXPECT_TRUE(anchors[at(rows.depths, i)].insert(at(rows.anchors, i)).second);
    EXPECT_LT(at(rows.anchors, i) + at(rows.depths, i), kTokens);
    EXPECT_EQ(at(rows.places.positions, kTokens + i), at(rows.anchors, i) + at(rows.depths, i));
  }
  // 20 times 0.7, 0.49, 0.343 and then the minimum.
  const std::map<std::int64_t, std::size_t> expected = {{1, 14}, {2, 10}, {3, 7}, {4, 6}};
  for (const auto& [depth, n] : expected) {
    // A place too near to the end has no row, so a depth may have fewer than its share.
    EXPECT_LE(anchors[depth].size(), n) << depth;
    EXPECT_GE(anchors[depth].size(), n - 3) << depth;
    for (const std::int64_t anchor : anchors[depth]) {
      if (depth > 1) {
        EXPECT_EQ(anchors[depth - 1].count(anchor), 1U) << depth;
      }
    }
  }
  EXPECT_EQ(anchors.size(), 4U);
}

TEST(MaskRows, SeeTheTextToTheirAnchorAndTheRowsInFront) {
  const MaskRows rows(kTokens, {.n_drafted = 4, .keep = 0.6, .min_share = 0.1});
  const auto anchor = [&](std::int64_t i) {
    return i < kTokens ? i : at(rows.anchors, i - kTokens);
  };
  const auto depth = [&](std::int64_t i) { return i < kTokens ? 0 : at(rows.depths, i - kTokens); };
  const std::int64_t n_rows = kTokens + rows.size();
  for (std::int64_t i = 0; i < n_rows; ++i) {
    for (std::int64_t j = 0; j < n_rows; ++j) {
      const bool sees =
          depth(j) == 0 ? anchor(j) <= anchor(i) : anchor(j) == anchor(i) && depth(j) <= depth(i);
      EXPECT_EQ(rows.places.unseen[i][j].item<bool>(), !sees) << i << " " << j;
    }
  }
}

TEST(MaskRows, WholeDraftsHaveARowOfEachDepth) {
  const MaskRows rows(kTokens, {.n_drafted = 4, .keep = 0.5, .min_share = 0.5});
  const Tensor drafts = rows.whole_drafts(4);
  ASSERT_GT(drafts.size(0), 4);
  for (std::int64_t i = 0; i < drafts.size(0); ++i) {
    const std::int64_t anchor = at(drafts[i], 0);
    EXPECT_LT(anchor + 3, kTokens);
    for (int k = 1; k < 4; ++k) {
      const std::int64_t row = at(drafts[i], k) - kTokens;
      EXPECT_EQ(at(rows.anchors, row), anchor);
      EXPECT_EQ(at(rows.depths, row), k);
    }
  }
}

// In use a draft is one causal pass: the text up to the anchor, then masks.
TEST(MaskRows, SayWhatADraftsOwnPassSays) {
  torch::manual_seed(5);
  ModelConfig config;
  config.architecture = "llama";
  config.vocabulary_size = 30;
  config.context_length = 64;
  config.n_layers = 2;
  config.dim = 16;
  config.n_heads = 4;
  config.n_kv_heads = 2;
  config.head_dim = 4;
  config.hidden_dim = 24;
  LlamaModule model(config, Products::full);
  initialise(*model, config.n_layers);
  for (Tensor& parameter : model->parameters()) {
    parameter.set_data(parameter.to(torch::kFloat64) * 4);
  }
  constexpr std::int64_t kMask = 29;
  const Tensor text = torch::randint(29, {2, kTokens}, torch::kInt64);
  const MaskRows rows(kTokens, {.n_drafted = 4, .keep = 0.7, .min_share = 0.2});
  const Tensor masks = torch::full({2, rows.size()}, kMask, torch::kInt64);
  const torch::NoGradGuard no_grad;
  const Tensor among = model->features_among(torch::cat({text, masks}, 1), rows.places);

  const Tensor whole = model->features(text);
  EXPECT_LT((among.narrow(1, 0, kTokens) - whole).abs().max().item<double>(), 1e-12);
  for (std::int64_t i = 0; i < rows.size(); ++i) {
    const std::int64_t n_text = at(rows.anchors, i) + 1;
    const std::int64_t n_masks = at(rows.depths, i);
    const Tensor pass =
        torch::cat({text.narrow(1, 0, n_text), torch::full({2, n_masks}, kMask, torch::kInt64)}, 1);
    const Tensor last = model->features(pass).select(1, n_text + n_masks - 1);
    EXPECT_LT((among.select(1, kTokens + i) - last).abs().max().item<double>(), 1e-12) << i;
  }
}

}  // namespace
}  // namespace outrider::train
