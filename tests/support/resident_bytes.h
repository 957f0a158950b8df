// SPDX-License-Identifier: Apache-2.0
// How much of a mapped file is in this process's memory.
#ifndef OUTRIDER_TESTS_SUPPORT_RESIDENT_BYTES_H_
#define OUTRIDER_TESTS_SUPPORT_RESIDENT_BYTES_H_

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

namespace outrider::test {

// The sum over all mappings of the file, as reported by Linux; nullopt on other systems or if no
// mapping has the file's name.
inline std::optional<std::size_t> resident_bytes(const std::filesystem::path& file) {
  std::ifstream maps("/proc/self/smaps");
  if (!maps) return std::nullopt;
  const std::string path = std::filesystem::canonical(file).string();
  std::optional<std::size_t> n_bytes;
  bool of_file = false;
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    std::string first;
    std::size_t kilobytes = 0;
    words >> first;
    if (first.empty() || first.back() != ':') {  // a mapping's header line, which ends in its path
      of_file = line.ends_with(path);
    } else if (of_file && first == "Rss:" && words >> kilobytes) {
      n_bytes = n_bytes.value_or(0) + kilobytes * 1024;
    }
  }
  return n_bytes;
}

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_RESIDENT_BYTES_H_
