// SPDX-License-Identifier: Apache-2.0
// A sequential read of memory: the bandwidth limit of passes over weights.
#ifndef OUTRIDER_MEASURE_STREAM_READ_H_
#define OUTRIDER_MEASURE_STREAM_READ_H_

#include <cstddef>
#include <cstdint>

#include "base/memory/big_memory.h"

namespace outrider {

// Owns the memory it reads. Not thread-safe: one run at a time.
class StreamRead {
 public:
  // n_bytes is rounded up to pages. The threads that will read the pages write them once. Throws
  // Error if there is not enough memory.
  StreamRead(std::size_t n_bytes, int n_threads);

  std::size_t n_bytes() const { return n_bytes_; }
  // The number of streams that a thread reads in turn. The processor prefetches each stream
  // separately, and several together reach a higher bandwidth. On two cores of a Sapphire Rapids,
  // 1, 2, 4, 8 streams a thread read 19.4, 24.1, 27.5, 25.6 GB/s (medians of 15 rounds in turn).
  enum class Streams { one, four };

  // Reads every byte once, with all threads. Returns the sum of the words, each of which is 1, so
  // that the caller can check that none was left out.
  std::uint64_t run(Streams streams = Streams::four) const;
  // The same, timed.
  double bytes_per_second(Streams streams = Streams::four) const;

 private:
  std::size_t n_bytes_;
  int n_threads_;
  BigMemory memory_;
};

}  // namespace outrider

#endif  // OUTRIDER_MEASURE_STREAM_READ_H_
