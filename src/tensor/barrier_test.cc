// SPDX-License-Identifier: Apache-2.0
#include "tensor/barrier.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace outrider {
namespace {

using namespace std::chrono_literals;

// After the barrier each thread reads what its neighbour wrote before it, whether waiting threads
// poll or sleep.
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

// A waiting thread does the offered work until there is none, but nothing if it must leave its
// processor at once.
TEST(Barrier, WaitsWithSomethingToDo) {
  for (const std::chrono::nanoseconds patience :
       {std::chrono::nanoseconds(Barrier::kPatience), 0ns}) {
    constexpr int kToDo = 10;
    const int expected = patience.count() > 0 ? kToDo : 0;
    Barrier barrier(patience);
    std::atomic<int> n_done = 0;
    std::jthread early([&] { barrier.wait(2, [&] { return ++n_done < kToDo; }); });
    while (n_done < expected) std::this_thread::yield();
    barrier.wait(2);
    early.join();
    EXPECT_EQ(n_done, expected);
  }
}

// However much work is offered, it continues once all have arrived.
TEST(Barrier, EndsWhatIsDoneMeanwhile) {
  Barrier barrier;
  std::atomic<bool> busy = false;
  std::jthread early([&] {
    barrier.wait(2, [&] {
      busy = true;
      return true;
    });
  });
  while (!busy) std::this_thread::yield();
  barrier.wait(2);
}

// A thread that waits much longer than the patience sleeps and is woken.
TEST(Barrier, WakesWhoSleeps) {
  Barrier barrier;
  std::jthread early([&] { barrier.wait(2); });
  std::this_thread::sleep_for(50 * Barrier::kPatience);
  barrier.wait(2);
}

}  // namespace
}  // namespace outrider
