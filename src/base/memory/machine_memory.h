// SPDX-License-Identifier: Apache-2.0
// The amount of memory.
#ifndef OUTRIDER_BASE_MEMORY_MACHINE_MEMORY_H_
#define OUTRIDER_BASE_MEMORY_MACHINE_MEMORY_H_

#include <cstdint>
#include <filesystem>

namespace outrider {

// In bytes: the machine's, or the limit of this process's control group if that is less (containers
// have one). groups: where the system shows control groups.
std::uint64_t machine_memory(const std::filesystem::path& groups = "/sys/fs/cgroup");

}  // namespace outrider

#endif  // OUTRIDER_BASE_MEMORY_MACHINE_MEMORY_H_
