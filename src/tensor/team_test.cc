// SPDX-License-Identifier: Apache-2.0
#include "tensor/team.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cfenv>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace outrider {
namespace {

TEST(Team, SharesCoverEverythingOnceAndEvenly) {
  for (const int size : {1, 2, 3, 7}) {
    for (const std::int64_t n : {0, 1, 5, 7, 100}) {
      std::int64_t next = 0;
      for (int index = 0; index < size; ++index) {
        const Range share = Team(index, size, nullptr).share(n);
        EXPECT_EQ(share.begin, next);
        EXPECT_GE(share.end - share.begin, n / size);
        EXPECT_LE(share.end - share.begin, n / size + 1);
        next = share.end;
      }
      EXPECT_EQ(next, n);
    }
  }
}

// Each of many loops, without barriers between them, covers everything once. Parts are no smaller
// than asked or an even share, except the last; each thread's first part comes first.
TEST(Team, DynamicLoopsCoverEverythingOnce) {
  constexpr int kLoops = 300;
  for (const int size : {1, 2, 3, 7}) {
    for (const std::int64_t n : {0, 1, 5, 100}) {
      for (const std::int64_t min_size : {1, 3, 200}) {
        std::vector<std::vector<std::atomic<int>>> seen(kLoops);
        for (auto& loop : seen) loop = std::vector<std::atomic<int>>(static_cast<std::size_t>(n));
        std::atomic<int> too_small = 0;
        std::atomic<int> others_first = 0;
        run_team(size, [&](const Team& team) {
          const Range first = team.first_part(n, min_size);
          for (auto& cells : seen) {
            bool begun = first.begin == first.end;
            team.parallel_for_dynamic(n, min_size, [&](const Range& part) {
              if (!begun && (part.begin != first.begin || part.end != first.end)) ++others_first;
              begun = true;
              const std::int64_t fewest = std::min(min_size, (n + size - 1) / size);
              if (part.end - part.begin < fewest && part.end < n) ++too_small;
              for (std::int64_t i = part.begin; i < part.end; ++i) {
                ++cells[static_cast<std::size_t>(i)];
              }
            });
            if (!begun) ++others_first;
          }
        });
        EXPECT_EQ(too_small, 0);
        EXPECT_EQ(others_first, 0);
        for (const auto& cells : seen) {
          for (const std::atomic<int>& cell : cells) ASSERT_EQ(cell, 1) << size << " " << n;
        }
      }
    }
  }
}

// First parts are three quarters of even shares, if these exceed the least part, and never more
// than an even share: a slow thread delays the others by no more than that.
TEST(Team, FirstPartsAreThreeQuartersOfEvenShares) {
  const auto first_part = [](int index, std::int64_t n, std::int64_t min_size) {
    const Range part = Team(index, 4, nullptr).first_part(n, min_size);
    return std::pair(part.begin, part.end);
  };
  EXPECT_EQ(first_part(0, 80, 5), std::pair(0L, 15L));
  EXPECT_EQ(first_part(3, 80, 5), std::pair(45L, 60L));
  EXPECT_EQ(first_part(3, 80, 18), std::pair(54L, 72L));
  EXPECT_EQ(first_part(0, 10, 15), std::pair(0L, 3L));
  EXPECT_EQ(first_part(3, 10, 15), std::pair(9L, 10L));
  EXPECT_EQ(first_part(3, 2, 15), std::pair(2L, 2L));
}

// After the barrier each thread reads what its neighbour wrote before it, many times. before(team,
// round): what else it does before the barrier.
template <class Before>
void expect_barriers_to_publish_writes(const Before& before) {
  constexpr int kRounds = 200;
  std::vector<int> mistakes(3, 0);
  std::vector<int> cells(3, 0);
  run_team(3, [&](const Team& team) {
    const auto mine = static_cast<std::size_t>(team.index());
    const auto next = static_cast<std::size_t>((team.index() + 1) % team.size());
    for (int round = 1; round <= kRounds; ++round) {
      cells[mine] = round;
      before(team, round);
      team.barrier();
      mistakes[mine] += cells[next] == round ? 0 : 1;
      team.barrier();
    }
  });
  EXPECT_EQ(mistakes, std::vector<int>(3, 0));
}

TEST(Team, BarrierPublishesWrites) {
  expect_barriers_to_publish_writes([](const Team&, int) {});
}

// Prefetching some of what is read next at each barrier, or more than once, changes nothing.
TEST(Team, BarrierPublishesWritesWhileThereIsSomethingToCallFor) {
  const std::vector<std::byte> weights(100'000);
  expect_barriers_to_publish_writes([&](const Team& team, int round) {
    team.set_prefetch(weights.data() + 64 * (round / 3),
                      1000U * static_cast<std::size_t>(team.index()));
  });
}

TEST(Team, RunsInsideAnotherTeam) {
  std::vector<int> runs(2, 0);
  run_team(2, [&](const Team& outer) {
    run_team(2, [&](const Team& inner) {
      inner.barrier();
      if (inner.index() == 0) ++runs[static_cast<std::size_t>(outer.index())];
    });
  });
  EXPECT_EQ(runs, std::vector<int>(2, 1));
}

#if defined(__x86_64__)
TEST(Team, EveryThreadHasTheDefaultFloatEnvironment) {
  const unsigned before = _mm_getcsr();
  // The caller flushes subnormals and rounds up; its workers are new and old ones.
  constexpr unsigned kFlushAndRoundUp = 0x1f80 | 0x8040 | 0x4000;
  _mm_setcsr(kFlushAndRoundUp);
  std::vector<unsigned> seen(4, 0);
  run_team(4, [&](const Team& team) {
    seen[static_cast<std::size_t>(team.index())] = _mm_getcsr();
    if (team.index() == 1) _mm_setcsr(kFlushAndRoundUp);
  });
  const unsigned after = _mm_getcsr();
  _mm_setcsr(before);
  EXPECT_EQ(seen, std::vector<unsigned>(4, 0x1f80));
  // Except for the sticky exception flags: the runtime computes with floats when it starts.
  EXPECT_EQ(after & ~0x3fU, kFlushAndRoundUp);
}
#elif defined(__aarch64__)
std::uint64_t float_state() {
  std::uint64_t state = 0;
  __asm__ volatile("mrs %0, fpcr" : "=r"(state));
  return state;
}
void set_float_state(std::uint64_t state) { __asm__ volatile("msr fpcr, %0" ::"r"(state)); }

TEST(Team, EveryThreadHasTheDefaultFloatEnvironment) {
  const std::uint64_t before = float_state();
  constexpr std::uint64_t kFlushAndRoundUp = 1U << 24 | 1U << 22;
  set_float_state(kFlushAndRoundUp);
  std::vector<std::uint64_t> seen(4, 1);
  run_team(4, [&](const Team& team) {
    seen[static_cast<std::size_t>(team.index())] = float_state();
    if (team.index() == 1) set_float_state(kFlushAndRoundUp);
  });
  const std::uint64_t after = float_state();
  set_float_state(before);
  EXPECT_EQ(seen, std::vector<std::uint64_t>(4, 0));
  EXPECT_EQ(after, kFlushAndRoundUp);
}
#endif

}  // namespace
}  // namespace outrider
