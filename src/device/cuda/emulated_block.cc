// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/emulated_block.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "outrider/error.h"

namespace outrider::device::cuda {
namespace {

constexpr std::uint32_t kWarpThreads = 32;
constexpr int kNonsense = 0x7f;  // bytes of it: 3.4e38, 2139062143

thread_local EmulatedBlock* running_block = nullptr;

}  // namespace

const char* name_of(ThreadOrder order) {
  constexpr const char* kNames[] = {"ascending", "descending", "shuffled"};
  return kNames[static_cast<int>(order)];
}

EmulatedBlock& EmulatedBlock::current() { return *running_block; }

void EmulatedBlock::run(const EmulatedLaunch& launch, const std::function<void()>& body) {
  static thread_local EmulatedBlock block;
  block.run_all(launch, body);
}

std::vector<std::uint32_t> EmulatedBlock::order_of(std::uint32_t n) {
  std::vector<std::uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0U);
  if (launch_->order == ThreadOrder::descending) std::reverse(order.begin(), order.end());
  if (launch_->order == ThreadOrder::shuffled) {
    for (std::uint32_t i = n; i > 1; --i) {
      std::swap(order[i - 1], order[static_cast<std::uint32_t>(random_()) % i]);
    }
  }
  return order;
}

void EmulatedBlock::run_all(const EmulatedLaunch& launch, const std::function<void()>& body) {
  launch_ = &launch;
  body_ = &body;
  random_.seed(launch.seed);
  while (threads_.size() < launch.n_threads) threads_.emplace_back();
  const auto& grid = launch.grid;
  running_block = this;
  for (const std::uint32_t block : order_of(grid[0] * grid[1] * grid[2])) {
    place_ = {block % grid[0], block / grid[0] % grid[1], block / grid[0] / grid[1]};
    run_block();
  }
}

void EmulatedBlock::run_block() {
  shared_.clear();
  for (std::uint32_t i = 0; i < launch_->n_threads; ++i) {
    Thread& thread = threads_[i];
    thread.state = Thread::State::ready;
    thread.n_shuffles = 0;
    thread.fiber->begin([](void* block) { (*static_cast<EmulatedBlock*>(block)->body_)(); }, this);
  }
  const bool is_shuffled = launch_->order == ThreadOrder::shuffled;
  std::vector<std::uint32_t> order = order_of(launch_->n_threads);
  for (;;) {
    run_ready(order);
    const auto end = threads_.begin() + launch_->n_threads;
    if (std::all_of(threads_.begin(), end,
                    [](const Thread& thread) { return thread.state == Thread::State::ended; })) {
      return;
    }
    release();
    if (is_shuffled) order = order_of(launch_->n_threads);
  }
}

// Runs warp after warp, each until its threads wait for the block, or not all of them come to one
// shuffle.
void EmulatedBlock::run_ready(const std::vector<std::uint32_t>& order) {
  std::vector<std::uint32_t> warps;
  for (const std::uint32_t i : order) {
    const std::uint32_t warp = i / kWarpThreads;
    if (std::find(warps.begin(), warps.end(), warp) == warps.end()) warps.push_back(warp);
  }
  for (const std::uint32_t warp : warps) {
    while (run_ready_of_warp(order, warp)) {
      if (!release_warp(warp)) break;
    }
  }
}

// Whether any thread ran.
bool EmulatedBlock::run_ready_of_warp(const std::vector<std::uint32_t>& order, std::uint32_t warp) {
  bool any = false;
  for (const std::uint32_t i : order) {
    Thread& thread = threads_[i];
    if (i / kWarpThreads != warp || thread.state != Thread::State::ready) continue;
    any = true;
    running_ = i;
    thread.fiber->resume();
    if (thread.fiber->ended()) thread.state = Thread::State::ended;
  }
  return any;
}

// Whether all of its threads had come to one shuffle, and go on.
bool EmulatedBlock::release_warp(std::uint32_t warp) {
  const std::uint32_t first = warp * kWarpThreads;
  if (launch_->n_threads - first < kWarpThreads) return false;
  const auto begin = threads_.begin() + first;
  const auto waits = [&](const Thread& thread) {
    return thread.state == Thread::State::at_warp && thread.line == begin->line;
  };
  if (!std::all_of(begin, begin + kWarpThreads, waits)) return false;
  std::for_each(begin, begin + kWarpThreads,
                [](Thread& thread) { thread.state = Thread::State::ready; });
  return true;
}

// No thread can go on but at a barrier to which all have come.
void EmulatedBlock::release() {
  const auto end = threads_.begin() + launch_->n_threads;
  const auto waits = [&](const Thread& thread) {
    return thread.state == Thread::State::at_block && thread.line == threads_.front().line;
  };
  if (!std::all_of(threads_.begin(), end, waits)) {
    const bool at_shuffle = std::any_of(threads_.begin(), end, [](const Thread& thread) {
      return thread.state == Thread::State::at_warp;
    });
    complain(at_shuffle ? "all threads of a warp at one shuffle"
                        : "all threads of a block at one barrier");
  }
  std::for_each(threads_.begin(), end, [](Thread& thread) { thread.state = Thread::State::ready; });
}

void EmulatedBlock::complain(const char* expected) const {
  std::string where;
  for (std::uint32_t i = 0; i < launch_->n_threads; ++i) {
    const Thread& thread = threads_[i];
    if (i > 0 && thread.state == threads_[i - 1].state && thread.line == threads_[i - 1].line) {
      continue;  // of a run of threads at one place the first
    }
    where += fmt::format("{}thread {} ", where.empty() ? "" : ", ", i);
    where +=
        thread.state == Thread::State::ended ? "ended" : fmt::format("at line {}", thread.line);
  }
  throw Error("emulate CUDA", launch_->kernel, expected, where);
}

void EmulatedBlock::wait(Thread::State state, std::uint32_t line) {
  Thread& thread = threads_[running_];
  thread.state = state;
  thread.line = line;
  thread.fiber->suspend();
}

void EmulatedBlock::wait_for_block(std::uint32_t line) { wait(Thread::State::at_block, line); }

std::uint32_t EmulatedBlock::shuffle_word(std::uint32_t word, std::uint32_t lane,
                                          std::uint32_t line) {
  const std::uint32_t own = running_;
  const std::uint32_t turn = threads_[own].n_shuffles++ % 2;
  threads_[own].words[turn] = word;
  wait(Thread::State::at_warp, line);
  return threads_[own / kWarpThreads * kWarpThreads + lane].words[turn];
}

void* EmulatedBlock::memory_of(const void* key, std::size_t n_bytes) {
  for (const SharedPiece& piece : shared_) {
    if (piece.key == key) return piece.bytes.get();
  }
  shared_.push_back({key, std::unique_ptr<std::byte[]>(new std::byte[n_bytes])});
  std::memset(shared_.back().bytes.get(), kNonsense, n_bytes);
  return shared_.back().bytes.get();
}

}  // namespace outrider::device::cuda
