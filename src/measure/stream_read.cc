// SPDX-License-Identifier: Apache-2.0
#include "measure/stream_read.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <new>

#include "outrider/error.h"
#include "tensor/team.h"

namespace outrider {
namespace {

// Huge pages, as for packed weights: otherwise address translation would be timed.
constexpr std::size_t kPage_bytes = std::size_t{2} << 20;
// Sixteen sums take eight registers on any x86: enough to keep up with the memory, few enough not
// to spill, which would time the stack. They are two cache lines.
constexpr int kSums = 16;
constexpr int kLineWords = 8;
// About the prefetch distance of products with a single stream.
constexpr std::size_t kAheadWords = 4096 / sizeof(std::uint64_t);
// The least part of a thread: a huge page, so that its streams are long.
constexpr std::int64_t kMinBlocks = kPage_bytes / sizeof(std::uint64_t) / kSums;

// The sum of n_blocks blocks of kSums words, read as kStreams parallel parts.
template <int kStreams>
std::uint64_t read_blocks(const std::uint64_t* words, std::int64_t n_blocks) {
  std::uint64_t sums[kSums] = {};
  const auto add = [&sums](const std::uint64_t* block) {
    __builtin_prefetch(block + kAheadWords);
    __builtin_prefetch(block + kAheadWords + kLineWords);
    for (int i = 0; i < kSums; ++i) sums[i] += block[i];
  };
  std::int64_t per_stream = n_blocks / kStreams;
  // Odd, so that streams never share sets of L1: some processors would read all four at a third of
  // the speed of one.
  if (kStreams > 1 && per_stream > 0) per_stream = (per_stream - 1) | 1;
  for (std::int64_t block = 0; block < per_stream; ++block) {
    for (int stream = 0; stream < kStreams; ++stream) {
      add(words + (stream * per_stream + block) * kSums);
    }
  }
  for (std::int64_t block = per_stream * kStreams; block < n_blocks; ++block) {
    add(words + block * kSums);
  }
  std::uint64_t sum = 0;
  for (const std::uint64_t part : sums) sum += part;
  return sum;
}

}  // namespace

StreamRead::StreamRead(std::size_t n_bytes, int n_threads)
    : n_bytes_((std::max<std::size_t>(n_bytes, 1) + kPage_bytes - 1) / kPage_bytes * kPage_bytes),
      n_threads_(n_threads) {
  try {
    memory_ = allocate_big_memory(n_bytes_);
  } catch (const std::bad_alloc&) {
    throw Error("measure bandwidth", "memory", fmt::format("{} bytes", n_bytes_), "none");
  }
  auto* const words = reinterpret_cast<std::uint64_t*>(memory_.get());
  const auto n_words = static_cast<std::int64_t>(n_bytes_ / sizeof(std::uint64_t));
  run_team(n_threads_, [words, n_words](const Team& team) {
    const Range share = team.share(n_words / kSums);
    std::fill(words + share.begin * kSums, words + share.end * kSums, 1);
  });
}

std::uint64_t StreamRead::run(Streams streams) const {
  const auto* const words = reinterpret_cast<const std::uint64_t*>(memory_.get());
  const auto n_words = static_cast<std::int64_t>(n_bytes_ / sizeof(std::uint64_t));
  std::atomic<std::uint64_t> total{0};
  run_team(n_threads_, [words, n_words, streams, &total](const Team& team) {
    std::uint64_t sum = 0;
    // Divided dynamically, as for products: a thread whose core other programs use does not delay
    // the rest.
    team.parallel_for_dynamic(n_words / kSums, kMinBlocks,
                              [words, streams, &sum](const Range& part) {
                                const std::uint64_t* begin = words + part.begin * kSums;
                                const std::int64_t n_blocks = part.end - part.begin;
                                sum += streams == Streams::one ? read_blocks<1>(begin, n_blocks)
                                                               : read_blocks<4>(begin, n_blocks);
                              });
    total += sum;
  });
  return total;
}

double StreamRead::bytes_per_second(Streams streams) const {
  const auto begin = std::chrono::steady_clock::now();
  const std::uint64_t total = run(streams);
  const auto end = std::chrono::steady_clock::now();
  // The result is used, so that no compiler removes the read.
  if (total != n_bytes_ / sizeof(std::uint64_t)) {
    throw Error("measure bandwidth", "memory", "what was written there", "something else");
  }
  return static_cast<double>(n_bytes_) / std::chrono::duration<double>(end - begin).count();
}

}  // namespace outrider
