// SPDX-License-Identifier: Apache-2.0
// Blocks of CUDA threads on the processor, each thread a fiber: barriers, shuffles, memory of a
// block. Threads run one after another from barrier to barrier, in an order that is chosen: what a
// kernel leaves must not depend on it. So a missing barrier shows as a result that differs.
//
// No thread is interrupted between barriers, and blocks follow one another: a race whose outcome no
// order changes does not show, nor do changes of one word that had to be atomic. Barriers are told
// apart by their lines in the source: one function that waits, called in two branches, looks like
// one barrier. And it says nothing of what only silicon does: the order of memory between warps,
// alignment traps, bank conflicts, time.
#ifndef OUTRIDER_DEVICE_CUDA_EMULATED_BLOCK_H_
#define OUTRIDER_DEVICE_CUDA_EMULATED_BLOCK_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <random>
#include <type_traits>
#include <vector>

#include "device/cuda/fiber.h"

namespace outrider::device::cuda {

// Of the threads between two barriers, and of the blocks of a launch.
enum class ThreadOrder { ascending, descending, shuffled };
inline constexpr ThreadOrder kThreadOrders[] = {ThreadOrder::ascending, ThreadOrder::descending,
                                                ThreadOrder::shuffled};
const char* name_of(ThreadOrder order);

struct EmulatedLaunch {
  const char* kernel = "";  // for messages
  std::array<std::uint32_t, 3> grid = {1, 1, 1};
  std::uint32_t n_threads = 1;  // of a block, along one axis
  ThreadOrder order = ThreadOrder::ascending;
  std::uint32_t seed = 1;  // of shuffled orders
};

class EmulatedBlock {
 public:
  // Runs all blocks of the launch on the calling thread; body is what each of their threads does.
  // Throws Error where not all threads of a block come to one barrier, or not all of a warp to one
  // shuffle: on a GPU that is undefined. `body` must not throw, and own nothing at a barrier.
  static void run(const EmulatedLaunch& launch, const std::function<void()>& body);

  // For bodies: the block that is running.
  static EmulatedBlock& current();
  std::uint32_t thread() const { return running_; }
  const std::array<std::uint32_t, 3>& place() const { return place_; }
  const std::array<std::uint32_t, 3>& grid() const { return launch_->grid; }

  void wait_for_block(std::uint32_t line);

  // What the lane-th thread of the warp brings to the same call. line: of the source, to tell calls
  // apart.
  template <class Value>
  Value shuffle(Value value, std::uint32_t lane, std::uint32_t line) {
    static_assert(sizeof(Value) == sizeof(std::uint32_t));
    std::uint32_t word;
    std::memcpy(&word, &value, sizeof word);
    word = shuffle_word(word, lane, line);
    std::memcpy(&value, &word, sizeof word);
    return value;
  }

  // Memory that the block's threads share, one of each type. At first it holds what no kernel
  // means: large numbers.
  template <class Memory>
  Memory& memory() {
    static_assert(std::is_trivially_destructible_v<Memory>);
    static constexpr char kKey = 0;
    return *static_cast<Memory*>(memory_of(&kKey, sizeof(Memory)));
  }

 private:
  struct Thread {
    enum class State { ready, at_block, at_warp, ended };
    std::unique_ptr<Fiber> fiber = std::make_unique<Fiber>();
    State state = State::ended;
    std::uint32_t line = 0;  // of the barrier where it waits
    // What it brings to its shuffles: the last one's word stays until the next one's is read.
    std::array<std::uint32_t, 2> words{};
    std::uint32_t n_shuffles = 0;
  };
  struct SharedPiece {
    const void* key;
    std::unique_ptr<std::byte[]> bytes;  // exactly as many: the sanitizer sees what is beyond
  };

  EmulatedBlock() = default;
  void run_all(const EmulatedLaunch& launch, const std::function<void()>& body);
  void run_block();
  void run_ready(const std::vector<std::uint32_t>& order);
  bool run_ready_of_warp(const std::vector<std::uint32_t>& order, std::uint32_t warp);
  void release();
  bool release_warp(std::uint32_t warp);
  std::vector<std::uint32_t> order_of(std::uint32_t n);
  void wait(Thread::State state, std::uint32_t line);
  std::uint32_t shuffle_word(std::uint32_t word, std::uint32_t lane, std::uint32_t line);
  void* memory_of(const void* key, std::size_t n_bytes);
  [[noreturn]] void complain(const char* expected) const;

  const EmulatedLaunch* launch_ = nullptr;
  const std::function<void()>* body_ = nullptr;
  std::array<std::uint32_t, 3> place_{};
  std::vector<Thread> threads_;  // kept from block to block, for their stacks
  std::vector<SharedPiece> shared_;
  std::uint32_t running_ = 0;
  std::mt19937 random_;
};

}  // namespace outrider::device::cuda

#endif  // OUTRIDER_DEVICE_CUDA_EMULATED_BLOCK_H_
