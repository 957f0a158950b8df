// SPDX-License-Identifier: Apache-2.0
#include "base/files/hub_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "outrider/error.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOperation = "open model";

// The hash in a file of refs/; empty if there is none. A hash has 40 digits; anything longer is cut
// there.
std::string read_hash(const fs::path& file) {
  std::ifstream stream(file);
  std::string hash(64, '\0');
  stream.read(hash.data(), static_cast<std::streamsize>(hash.size()));
  hash.resize(static_cast<std::size_t>(stream.gcount()));
  constexpr std::string_view kDigits = "0123456789abcdef";
  hash.resize(std::min(hash.find_first_not_of(kDigits), hash.size()));
  return hash;
}

}  // namespace

fs::path without_hub_cache(const fs::path& path) {
  std::error_code ignored;
  const fs::path snapshots = path / "snapshots";
  if (!fs::is_directory(snapshots, ignored) || fs::exists(path / "config.json", ignored)) {
    return path;
  }
  if (const std::string hash = read_hash(path / "refs" / "main"); !hash.empty()) {
    fs::path named = snapshots / hash;
    if (fs::is_directory(named, ignored)) return named;
    throw Error(
        kOperation, path.string(),
        fmt::format("the snapshot {} that refs/main names (download the model again)", hash),
        "none");
  }
  std::vector<fs::path> all;
  for (fs::directory_iterator entry(snapshots, ignored), end; !ignored && entry != end;
       entry.increment(ignored)) {
    if (entry->is_directory(ignored)) all.push_back(entry->path());
  }
  if (all.size() == 1) return all.front();
  throw Error(
      kOperation, path.string(), "one of its snapshots (PATH/snapshots/HASH)",
      fmt::format("a folder of the hub's cache with {} of them and no refs/main", all.size()));
}

}  // namespace outrider
