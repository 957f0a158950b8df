// SPDX-License-Identifier: Apache-2.0
// The loops give the same bits for any division of their rows among threads, which other tests'
// sizes never exercise; and their rounding.
#include "train/fused/fused_loops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "base/float16.h"

namespace outrider::train::loops {
namespace {

// Memory for results of either type, filled with values that no loop writes.
struct Room {
  explicit Room(std::size_t n, bool bf16) : bytes(n * (bf16 ? 2 : 4), 0xA5), is_bf16(bf16) {}
  operator Values() { return {bytes.data(), is_bf16}; }
  operator ConstValues() const { return {bytes.data(), is_bf16}; }
  float* f32() { return reinterpret_cast<float*>(bytes.data()); }
  std::vector<std::uint8_t> bytes;
  bool is_bf16;
};

Room random(std::size_t n, bool bf16, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0, 2);
  Room room(n, bf16);
  for (std::size_t i = 0; i < n; ++i) {
    const float value = normal(generator);
    const std::uint16_t bits = to_bf16(value).bits;
    if (bf16) std::memcpy(&room.bytes[2 * i], &bits, 2);
    if (!bf16) std::memcpy(&room.bytes[4 * i], &value, 4);
  }
  return room;
}

// `run` writes [first, last) of n items into buffers of the given sizes.
using Run = std::function<void(std::int64_t first, std::int64_t last, std::vector<Room>& out)>;
void expect_same_in_parts(std::int64_t n, const std::vector<Room>& rooms, const Run& run,
                          const char* name) {
  std::vector<Room> whole = rooms;
  run(0, n, whole);
  std::mt19937 generator(5);
  for (int round = 0; round < 4; ++round) {
    std::vector<Room> parts = rooms;
    for (std::int64_t first = 0; first < n;) {
      const std::int64_t last = std::min<std::int64_t>(n, first + 1 + generator() % 5);
      run(first, last, parts);
      first = last;
    }
    for (std::size_t i = 0; i < rooms.size(); ++i) {
      EXPECT_EQ(parts[i].bytes, whole[i].bytes) << name << ", result " << i;
      EXPECT_NE(whole[i].bytes, rooms[i].bytes) << name << ", result " << i;
    }
  }
}

TEST(FusedLoops, GiveTheSameBitsInParts) {
  constexpr std::int64_t kRows = 23;
  constexpr std::int64_t kDim = 38;
  constexpr std::size_t kAll = kRows * kDim;
  for (const bool bf16 : {false, true}) {
    const Room x = random(kAll, false, 1);
    const Room weight = random(kDim, false, 2);
    const Room narrow = random(kAll, bf16, 3);
    const Room other = random(kAll, bf16, 4);
    const Room grad = random(kAll, bf16, 5);
    const auto* xs = reinterpret_cast<const float*>(x.bytes.data());
    const auto* weights = reinterpret_cast<const float*>(weight.bytes.data());
    std::vector<Room> normed = {Room(kAll, bf16), Room(kRows, false)};
    expect_same_in_parts(
        kRows, normed,
        [&](auto first, auto last, auto& out) {
          rms_norm(xs, weights, first, last, kDim, 1e-5F, out[0], out[1].f32());
        },
        "norm");
    rms_norm(xs, weights, 0, kRows, kDim, 1e-5F, normed[0], normed[1].f32());
    const float* inverse = normed[1].f32();
    expect_same_in_parts(
        kRows, {Room(kAll, false)},
        [&](auto first, auto last, auto& out) {
          rms_norm_gradient(xs, weights, inverse, grad, first, last, kDim, out[0].f32());
        },
        "norm's gradient");
    expect_same_in_parts(
        kDim, {Room(kDim, false)},
        [&](auto first, auto last, auto& out) {
          rms_norm_weight_gradient(xs, inverse, grad, kRows, kDim, first, last, out[0].f32());
        },
        "norm's gradient to the weight");
    // 23 tokens of one sequence, each with one head of width 38.
    const HeadShape shape{.n_tokens = kRows, .n_heads = 1, .dim = kDim};
    const Room angles = random(kAll, false, 6);
    const auto* turns = reinterpret_cast<const float*>(angles.bytes.data());
    expect_same_in_parts(
        kRows, {Room(kAll, bf16), Room(kAll, bf16)},
        [&](auto first, auto last, auto& out) {
          turn_heads(narrow, shape, turns, turns + 7, 0.5F, first, last, out[0]);
          turn_heads_gradient(grad, shape, turns, turns + 7, 0.5F, first, last, out[1]);
        },
        "heads");
    // 23 tokens after 15 others.
    std::vector<Room> shares = {Room(kAll, bf16)};
    expect_same_in_parts(
        kRows, shares,
        [&](auto first, auto last, auto& out) {
          causal_softmax(narrow, kRows, kDim, first, last, out[0]);
        },
        "softmax");
    causal_softmax(narrow, kRows, kDim, 0, kRows, shares[0]);
    expect_same_in_parts(
        kRows, {Room(kAll, bf16)},
        [&](auto first, auto last, auto& out) {
          causal_softmax_gradient(shares[0], grad, kRows, kDim, first, last, out[0]);
        },
        "softmax's gradient");
    expect_same_in_parts(
        kAll, {Room(kAll, bf16), Room(kAll, bf16), Room(kAll, bf16), Room(kAll, false)},
        [&](auto first, auto last, auto& out) {
          silu_multiply(narrow, other, first, last, out[0]);
          silu_multiply_gradient(narrow, other, grad, first, last, out[1], out[2]);
          add_narrow(xs, narrow, first, last, out[3].f32());
        },
        "gate and sum");
    std::vector<std::int64_t> tokens;
    for (std::int64_t row = 0; row < kRows; ++row) tokens.push_back(row * 5 % kDim);
    std::vector<Room> losses = {Room(kRows, false), Room(kRows, false)};
    expect_same_in_parts(
        kRows, losses,
        [&](auto first, auto last, auto& out) {
          cross_entropy(narrow, tokens.data(), kDim, first, last, out[0].f32(), out[1].f32());
        },
        "loss");
    cross_entropy(narrow, tokens.data(), kDim, 0, kRows, losses[0].f32(), losses[1].f32());
    expect_same_in_parts(
        kRows, {Room(kAll, bf16)},
        [&](auto first, auto last, auto& out) {
          cross_entropy_gradient(narrow, tokens.data(), losses[1].f32(), xs, kDim, first, last,
                                 out[0]);
        },
        "loss's gradient");
    std::vector<Room> dists(5, Room(kRows, false));
    const auto rows_of = [](std::vector<Room>& out) {
      return DistributionRowsOut{.cross_entropies = out[0].f32(),
                                 .entropies = out[1].f32(),
                                 .overlaps = out[2].f32(),
                                 .log_sums = out[3].f32(),
                                 .target_log_sums = out[4].f32()};
    };
    expect_same_in_parts(
        kRows, dists,
        [&](auto first, auto last, auto& out) {
          compare_distributions(narrow, xs, kDim, first, last, rows_of(out));
        },
        "distributions");
    compare_distributions(narrow, xs, kDim, 0, kRows, rows_of(dists));
    expect_same_in_parts(
        kRows, {Room(kAll, bf16)},
        [&](auto first, auto last, auto& out) {
          compare_distributions_gradient(narrow, xs, dists[3].f32(), dists[4].f32(), xs, kDim,
                                         first, last, out[0]);
        },
        "distributions' gradient");
  }
}

TEST(FusedLoops, RoundToBf16AsBaseDoes) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> values = {1.0F + 0x1p-8F,
                                     1.0F + 3 * 0x1p-8F,
                                     infinity,
                                     -infinity,
                                     std::numeric_limits<float>::max(),
                                     -0.0F,
                                     1e-45F,
                                     std::numeric_limits<float>::quiet_NaN()};
  // The norm of ones is ones times the weights.
  const auto n = static_cast<std::int64_t>(values.size());
  const std::vector<float> ones(values.size(), 1.0F);
  Room out(values.size(), true);
  float inverse = 0;
  rms_norm(ones.data(), values.data(), 0, 1, n, 0.0F, out, &inverse);
  EXPECT_EQ(inverse, 1);
  for (std::size_t i = 0; i < values.size(); ++i) {
    Bf16 got;
    std::memcpy(&got.bits, &out.bytes[2 * i], 2);
    EXPECT_EQ(got.bits, to_bf16(values[i]).bits) << values[i];
  }
}

}  // namespace
}  // namespace outrider::train::loops
