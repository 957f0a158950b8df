// SPDX-License-Identifier: Apache-2.0
// Emulated blocks: what barriers, shuffles and memory of a block do, and what the emulation finds
// in kernels that are wrong.
#include "device/cuda/emulated_block.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "device/cuda/kernels/arithmetic.cuh"
#include "outrider/error.h"

namespace outrider::device::cuda {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

EmulatedLaunch launch_of(std::uint32_t n_threads, ThreadOrder order, std::uint32_t n_blocks = 1) {
  return {.kernel = "trial", .grid = {n_blocks, 1, 1}, .n_threads = n_threads, .order = order};
}

class EmulatedBlocks : public ::testing::TestWithParam<ThreadOrder> {};

TEST_P(EmulatedBlocks, RunEveryThreadOfEveryBlockOnce) {
  std::vector<int> runs(2 * 3 * 4 * 70);
  EmulatedBlock::run(
      {.kernel = "trial", .grid = {2, 3, 4}, .n_threads = 70, .order = GetParam()}, [&] {
        const std::uint32_t block = (block_z() * 3 + block_y()) * blocks_along_x() + block_x();
        ++runs[block * 70 + lane_index()];
      });
  EXPECT_THAT(runs, ::testing::Each(1));
}

struct Numbers {
  std::uint32_t of[64];
};

// Each thread reads what the next one wrote.
std::vector<std::uint32_t> pass_on(ThreadOrder order, bool has_barrier) {
  std::vector<std::uint32_t> got(64);
  EmulatedBlock::run(launch_of(64, order), [&] {
    Numbers& numbers = block_memory<Numbers>();
    numbers.of[lane_index()] = lane_index() * 3;
    if (has_barrier) wait_for_block();
    got[lane_index()] = numbers.of[(lane_index() + 1) % 64];
  });
  return got;
}

TEST_P(EmulatedBlocks, WaitForAllThreadsAtABarrier) {
  std::vector<std::uint32_t> expected(64);
  for (std::uint32_t i = 0; i < 64; ++i) expected[i] = (i + 1) % 64 * 3;
  EXPECT_EQ(pass_on(GetParam(), true), expected);
}

TEST_P(EmulatedBlocks, BarriersCanFollowOneAnotherInLoops) {
  std::vector<std::uint32_t> got(64);
  EmulatedBlock::run(launch_of(64, GetParam()), [&] {
    Numbers& numbers = block_memory<Numbers>();
    const std::uint32_t lane = lane_index();
    numbers.of[lane] = 1;
    for (std::uint32_t by = 1; by < 64; by *= 2) {  // sums of all numbers up to one's own
      wait_for_block();
      const std::uint32_t before = lane >= by ? numbers.of[lane - by] : 0;
      wait_for_block();
      numbers.of[lane] += before;
    }
    got[lane] = numbers.of[lane];
  });
  std::vector<std::uint32_t> expected(64);
  std::iota(expected.begin(), expected.end(), 1U);
  EXPECT_EQ(got, expected);
}

TEST_P(EmulatedBlocks, ShuffleWithinWarps) {
  std::vector<std::uint32_t> below(64);
  std::vector<std::uint32_t> sums(64);
  std::vector<float> floats(64);
  EmulatedBlock::run(launch_of(64, GetParam()), [&] {
    const std::uint32_t lane = lane_index();
    below[lane] = from_below(lane, 5);
    std::uint32_t sum = lane;
    for (std::uint32_t bit = 1; bit < kWarp; bit *= 2) sum += from_beside(sum, bit);
    sums[lane] = sum;
    floats[lane] = from_beside(static_cast<float>(lane) + 0.5F, 1);
  });
  for (std::uint32_t i = 0; i < 64; ++i) {
    EXPECT_EQ(below[i], i % 32 + 5 < 32 ? i + 5 : i);
    EXPECT_EQ(sums[i], i < 32 ? 496U : 496U + 1024U);
    EXPECT_EQ(floats[i], static_cast<float>(i ^ 1U) + 0.5F);
  }
}

TEST_P(EmulatedBlocks, MemoryOfABlockHoldsNothingOfTheOneBefore) {
  EmulatedBlock::run(launch_of(2, GetParam(), 3), [] {
    Numbers& numbers = block_memory<Numbers>();
    EXPECT_EQ(numbers.of[lane_index()], 0x7f7f7f7fU);
    numbers.of[lane_index()] = 5;
  });
}

std::string complaint(const EmulatedLaunch& launch, const std::function<void()>& body) {
  try {
    EmulatedBlock::run(launch, body);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_P(EmulatedBlocks, RefuseABarrierThatNotAllThreadsComeTo) {
  EXPECT_THAT(complaint(launch_of(64, GetParam()),
                        [] {
                          if (lane_index() != 40) wait_for_block();
                        }),
              AllOf(HasSubstr("[emulate CUDA] trial"), HasSubstr("one barrier"),
                    HasSubstr("thread 40 ended")));
  const auto at_two_places = [] {  // the compiler sees a macro's arguments on one line
    if (lane_index() < 32) {       // NOLINT(bugprone-branch-clone)
      wait_for_block();
    } else {
      wait_for_block();
    }
  };
  EXPECT_THAT(complaint(launch_of(64, GetParam()), at_two_places), HasSubstr("one barrier"));
  EXPECT_EQ(pass_on(GetParam(), true)[0], 3U);  // it can be used again
}

TEST_P(EmulatedBlocks, RefuseAShuffleThatNotAllThreadsOfTheWarpComeTo) {
  EXPECT_THAT(complaint(launch_of(64, GetParam()),
                        [] {
                          if (lane_index() < 16) from_below(1U, 1);
                          wait_for_block();
                        }),
              HasSubstr("all threads of a warp at one shuffle"));
  const auto at_two_places = [] {
    if (lane_index() < 16) {
      from_below(1U, 1);
    } else {
      from_beside(1U, 1);
    }
  };
  EXPECT_THAT(complaint(launch_of(32, GetParam()), at_two_places), HasSubstr("one shuffle"));
  // A whole warp may shuffle while another one waits.
  EXPECT_EQ(complaint(launch_of(64, GetParam()),
                      [] {
                        if (lane_index() < 32) from_below(1U, 1);
                        wait_for_block();
                      }),
            "");
}

INSTANTIATE_TEST_SUITE_P(Orders, EmulatedBlocks, ::testing::ValuesIn(kThreadOrders),
                         [](const auto& info) { return std::string(name_of(info.param)); });

TEST(EmulatedOrders, ShowAMissingBarrier) {
  std::set<std::vector<std::uint32_t>> results;
  for (const ThreadOrder order : kThreadOrders) results.insert(pass_on(order, false));
  EXPECT_EQ(results.size(), 3U);
}

TEST(EmulatedOrders, AreWhatTheyAreCalled) {
  const auto order_of = [](ThreadOrder order, std::uint32_t seed) {
    std::vector<std::uint32_t> seen;
    EmulatedLaunch launch = launch_of(5, order);
    launch.seed = seed;
    EmulatedBlock::run(launch, [&] { seen.push_back(lane_index()); });
    return seen;
  };
  EXPECT_THAT(order_of(ThreadOrder::ascending, 1), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(order_of(ThreadOrder::descending, 1), ElementsAre(4, 3, 2, 1, 0));
  EXPECT_EQ(order_of(ThreadOrder::shuffled, 7), order_of(ThreadOrder::shuffled, 7));
  EXPECT_NE(order_of(ThreadOrder::shuffled, 7), order_of(ThreadOrder::shuffled, 8));
}

TEST(EmulatedOrders, AreThoseOfBlocksToo) {
  const auto order_of = [](ThreadOrder order) {
    std::vector<std::uint32_t> seen;
    EmulatedBlock::run(launch_of(1, order, 5), [&] { seen.push_back(block_x()); });
    return seen;
  };
  EXPECT_THAT(order_of(ThreadOrder::ascending), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(order_of(ThreadOrder::descending), ElementsAre(4, 3, 2, 1, 0));
  EXPECT_THAT(order_of(ThreadOrder::shuffled), Not(ElementsAre(0, 1, 2, 3, 4)));
}

TEST(EmulatedOrders, AreShuffledAnewAtEveryBarrier) {
  for (const ThreadOrder order : kThreadOrders) {
    std::vector<std::uint32_t> before;
    std::vector<std::uint32_t> behind;
    EmulatedBlock::run(launch_of(8, order), [&] {
      before.push_back(lane_index());
      wait_for_block();
      behind.push_back(lane_index());
    });
    EXPECT_EQ(before != behind, order == ThreadOrder::shuffled) << name_of(order);
  }
}

// What the emulation makes of single operations, beside those that trials compare (trials.h).
TEST(EmulatedArithmetic, RoundsToIntegersAsAGpuDoes) {
  EXPECT_EQ(nearest_int(2.5F), 2);
  EXPECT_EQ(nearest_int(3.5F), 4);
  EXPECT_EQ(nearest_int(-0.5F), 0);
  EXPECT_EQ(nearest_int(float_of(kNan)), 0);
  EXPECT_EQ(nearest_int(3e9F), INT32_MAX);
  EXPECT_EQ(nearest_int(-3e9F), INT32_MIN);
}

TEST(EmulatedArithmetic, AddsProductsOfSignedBytes) {
  EXPECT_EQ(add_dot(0x80ff017fU, 0x80017f02U, 10), 10 + 16384 - 1 + 127 + 254);
}

}  // namespace
}  // namespace outrider::device::cuda
