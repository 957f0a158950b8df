#include "base/machine_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace outrider {

std::uint64_t machine_memory(const std::filesystem::path& groups) {
  const auto all = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                   static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  // "max" where there is no limit, and no file in the root group.
  std::ifstream file(groups / "memory.max");
  std::uint64_t limit = 0;
  return file >> limit ? std::min(all, limit) : all;
}

}  // namespace outrider
