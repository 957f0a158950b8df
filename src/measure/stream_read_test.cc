// SPDX-License-Identifier: Apache-2.0
#include "measure/stream_read.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

TEST(StreamRead, ReadsEveryWordOnce) {
  for (const int n_threads : {1, 2, 3}) {
    for (const std::size_t n_bytes : {std::size_t{1}, (std::size_t{2} << 20) + 1}) {
      const StreamRead read(n_bytes, n_threads);
      EXPECT_GE(read.n_bytes(), n_bytes);
      for (const auto streams : {StreamRead::Streams::one, StreamRead::Streams::four}) {
        EXPECT_EQ(read.run(streams), read.n_bytes() / 8);
        EXPECT_GT(read.bytes_per_second(streams), 0);
      }
    }
  }
}

}  // namespace
}  // namespace outrider
