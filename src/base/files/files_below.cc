// SPDX-License-Identifier: Apache-2.0
#include "base/files/files_below.h"

#include <algorithm>
#include <string>

#include "base/files/atomic_file.h"

namespace outrider {

std::vector<std::filesystem::path> files_below(const std::filesystem::path& folder) {
  const auto is_hidden = [](const std::filesystem::path& path) {
    const std::string name = path.filename().string();
    return name.starts_with('.') || name.ends_with(AtomicFile::kPartialSuffix);
  };
  std::vector<std::filesystem::path> files;
  for (auto entry = std::filesystem::recursive_directory_iterator(folder);
       entry != std::filesystem::recursive_directory_iterator(); ++entry) {
    if (is_hidden(entry->path())) {
      if (entry->is_directory()) entry.disable_recursion_pending();
    } else if (entry->is_regular_file()) {
      files.push_back(entry->path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace outrider
