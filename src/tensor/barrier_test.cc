#include "tensor/barrier.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

namespace outrider {
namespace {

using namespace std::chrono_literals;

// Each thread reads, behind the barrier, what its neighbour wrote before it, whether those who wait
// look or sleep.
TEST(Barrier, PublishesWrites) {
  for (const std::chrono::nanoseconds patience :
       {std::chrono::nanoseconds(Barrier::kPatience), 0ns}) {
    for (const int n_threads : {1, 2, 3, 5}) {
      constexpr int kRounds = 300;
      Barrier barrier(patience);
      std::vector<int> cells(static_cast<std::size_t>(n_threads), 0);
      std::vector<int> mistakes = cells;
      std::vector<std::jthread> threads;
      for (int index = 0; index < n_threads; ++index) {
        threads.emplace_back([&, index] {
          const auto mine = static_cast<std::size_t>(index);
          const auto next = static_cast<std::size_t>((index + 1) % n_threads);
          for (int round = 1; round <= kRounds; ++round) {
            cells[mine] = round;
            barrier.wait(n_threads);
            mistakes[mine] += cells[next] == round ? 0 : 1;
            barrier.wait(n_threads);
          }
        });
      }
      threads.clear();
      EXPECT_EQ(mistakes, std::vector<int>(static_cast<std::size_t>(n_threads), 0));
    }
  }
}

// Who waits much longer than patience lasts sleeps, and is woken.
TEST(Barrier, WakesWhoSleeps) {
  Barrier barrier;
  std::jthread early([&] { barrier.wait(2); });
  std::this_thread::sleep_for(50 * Barrier::kPatience);
  barrier.wait(2);
}

}  // namespace
}  // namespace outrider
