// SPDX-License-Identifier: Apache-2.0
#include "base/memory/machine_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace outrider {

std::uint64_t machine_memory(const std::filesystem::path& groups) {
  const auto all = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                   static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  // For versions 2 and 1. "max", or a number beyond all memory, means no limit.
  std::uint64_t least = all;
  for (const char* const name : {"memory.max", "memory/memory.limit_in_bytes"}) {
    std::ifstream file(groups / name);
    std::uint64_t limit = 0;
    if (file >> limit) least = std::min(least, limit);
  }
  return least;
}

}  // namespace outrider
