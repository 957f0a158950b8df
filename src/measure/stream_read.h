// A plain read of memory from end to end: the roof that passes over weights run against.
#ifndef OUTRIDER_MEASURE_STREAM_READ_H_
#define OUTRIDER_MEASURE_STREAM_READ_H_

#include <cstddef>
#include <cstdint>

#include "base/big_memory.h"

namespace outrider {

// Owns the memory it reads. Not thread-safe: one run at a time.
class StreamRead {
 public:
  // n_bytes is rounded up to pages. They are written once, by the threads that will read them.
  // Throws Error where there is no such memory.
  StreamRead(std::size_t n_bytes, int n_threads);

  std::size_t n_bytes() const { return n_bytes_; }
  // How many places a thread reads at in turn. The prefetcher of the processor follows each by
  // itself, and more of them together draw more from the memory: on two cores of a Sapphire Rapids,
  // 1, 2, 4, 8 streams a thread read 19.4, 24.1, 27.5, 25.6 GB/s (medians of 15 rounds in turn).
  enum class Streams { one, four };

  // Reads every byte once, by all threads. The sum of the words read, each of them 1: their number,
  // so that none was left out.
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
