// SPDX-License-Identifier: Apache-2.0
#include "train/batches/block_anchors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

namespace outrider::train {
namespace {

using torch::Tensor;

// Tokens that encode their place: from 100 in the first sequence, from 200 in the second.
Tensor text() {
  return torch::stack({torch::arange(100, 110, torch::kInt64), torch::arange(200, 210)});
}

std::vector<std::int64_t> numbers(const Tensor& x) {
  const Tensor flat = x.contiguous().to(torch::kInt64);
  return {flat.data_ptr<std::int64_t>(), flat.data_ptr<std::int64_t>() + flat.numel()};
}

// A prompt of four tokens in the second sequence.
Tensor weights() {
  Tensor weights = torch::ones({2, 10});
  weights.select(1, 0).fill_(0);
  weights[1].narrow(0, 0, 4).fill_(0);
  return weights;
}

TEST(BlockAnchors, StandWhereThereIsAStateBeforeAndATokenBehind) {
  const AnchoredBlocks blocks(text(), weights(), {.n_blocks = 10, .n_drafted = 3});
  const std::vector<std::vector<std::int64_t>> expected = {{1, 2, 3, 4, 5, 6, 7, 8},
                                                           {3, 4, 5, 6, 7, 8}};
  for (std::int64_t sequence = 0; sequence < 2; ++sequence) {
    std::vector<std::int64_t> counting;
    for (std::int64_t block = 0; block < blocks.anchors.size(1); ++block) {
      const auto anchor = blocks.anchors[sequence][block].item<std::int64_t>();
      const std::vector<std::int64_t> counts = numbers(blocks.weights[sequence][block]);
      if (counts[0] == 0) {
        EXPECT_EQ(counts, (std::vector<std::int64_t>{0, 0, 0}));
        continue;
      }
      counting.push_back(anchor);
      for (std::int64_t k = 0; k < 4; ++k) {
        const bool there = anchor + k < 10;
        if (k > 0) {
          EXPECT_EQ(counts[static_cast<std::size_t>(k - 1)], there ? 1 : 0);
        }
        if (!there) continue;
        EXPECT_EQ(blocks.tokens[sequence][block][k].item<std::int64_t>(),
                  100 * (sequence + 1) + anchor + k);
        // The distribution of the token k + 1 places later is at the place before it.
        if (k == 3) continue;
        EXPECT_EQ(blocks.judges.view({2, -1, 3})[sequence][block][k].item<std::int64_t>(),
                  10 * sequence + anchor + k);
      }
    }
    std::sort(counting.begin(), counting.end());
    EXPECT_EQ(counting, expected[static_cast<std::size_t>(sequence)]);
  }
}

TEST(BlockAnchors, WhatFollowsAGapDoesNotCount) {
  Tensor gap = weights();
  gap[0][5] = 0;
  const AnchoredBlocks blocks(text(), gap, {.n_blocks = 10, .n_drafted = 4});
  std::map<std::int64_t, std::vector<std::int64_t>> by_anchor;
  for (std::int64_t block = 0; block < blocks.anchors.size(1); ++block) {
    by_anchor[blocks.anchors[0][block].item<std::int64_t>()] = numbers(blocks.weights[0][block]);
  }
  using Counts = std::vector<std::int64_t>;
  EXPECT_EQ(by_anchor.at(2), (Counts{1, 1, 0, 0}));
  EXPECT_EQ(by_anchor.at(3), (Counts{1, 0, 0, 0}));
  EXPECT_EQ(by_anchor.at(4), (Counts{0, 0, 0, 0}));
  EXPECT_EQ(by_anchor.at(5), (Counts{1, 1, 1, 1}));
}

TEST(BlockAnchors, WholeBlocksAlone) {
  const AnchoredBlocks blocks(text(), weights(), {.n_blocks = 10, .n_drafted = 3, .whole = true});
  const Tensor counts = blocks.weights.sum(-1);
  EXPECT_EQ(numbers((counts == 3).sum(-1)), (std::vector<std::int64_t>{6, 4}));
  EXPECT_EQ(numbers((counts > 0).sum(-1)), (std::vector<std::int64_t>{6, 4}));
}

TEST(BlockAnchors, AreDrawnAnewByTheGenerator) {
  const AnchorChoice choice{.n_blocks = 3, .n_drafted = 2};
  const auto drawn = [&](std::uint64_t seed) {
    torch::manual_seed(seed);
    return numbers(AnchoredBlocks(text(), weights(), choice).anchors);
  };
  EXPECT_EQ(drawn(3), drawn(3));
  std::set<std::int64_t> seen;
  for (std::uint64_t seed = 0; seed < 64; ++seed) {
    const std::vector<std::int64_t> anchors = drawn(seed);
    EXPECT_EQ(std::set(anchors.begin(), anchors.begin() + 3).size(), 3U);
    seen.insert(anchors.begin(), anchors.begin() + 3);
  }
  EXPECT_EQ(seen.size(), 8U);  // each of the eight places of the first sequence
  // Evaluation uses a random generator of its own.
  torch::manual_seed(1);
  const double next = torch::rand({1}).item<double>();
  torch::manual_seed(1);
  const at::Generator own = at::make_generator<at::CPUGeneratorImpl>(7);
  const AnchoredBlocks of_own(text(), weights(), choice, own);
  EXPECT_EQ(torch::rand({1}).item<double>(), next);
}

}  // namespace
}  // namespace outrider::train
