// SPDX-License-Identifier: Apache-2.0
// Describes this machine.
#include <fmt/format.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "outrider/method_report.h"

namespace outrider {
namespace {

// "model name : Intel(R) Xeon(R)" of the first processor; empty if the system does not report it.
std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (!line.starts_with("model name")) continue;
    const std::size_t begin = line.find_first_not_of(" \t", line.find(':') + 1);
    return begin == std::string::npos ? std::string() : line.substr(begin);
  }
  return {};
}

int usable_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(std::thread::hardware_concurrency());
}

}  // namespace

MachineDescription describe_machine() {
  MachineDescription machine{.processor = processor_name(),
                             .n_processors = usable_processors(),
                             .memory_bytes = 0,
                             .system = {}};
  const long n_pages = ::sysconf(_SC_PHYS_PAGES);
  const long page_bytes = ::sysconf(_SC_PAGESIZE);
  if (n_pages > 0 && page_bytes > 0) {
    machine.memory_bytes =
        static_cast<std::uint64_t>(n_pages) * static_cast<std::uint64_t>(page_bytes);
  }
  utsname names = {};
  if (::uname(&names) == 0) {
    machine.system = fmt::format("{} {} {}", names.sysname, names.release, names.machine);
  }
  return machine;
}

}  // namespace outrider
