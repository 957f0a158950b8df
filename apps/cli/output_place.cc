// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/output_place.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <system_error>

#include "outrider/error.h"

namespace outrider::cli {
namespace {

namespace fs = std::filesystem;

void require_other(const fs::path& out, const fs::path& file) {
  std::error_code unknown;
  if (!fs::equivalent(out, file, unknown)) return;
  throw Error("write file", out.string(), "another file than those that are read", file.string());
}

}  // namespace

void require_not_read(const std::string& out, const std::vector<fs::path>& read) {
  std::error_code unknown;
  if (!fs::exists(out, unknown)) return;
  for (const fs::path& path : read) {
    require_other(out, path);
    if (!fs::is_directory(path, unknown)) continue;
    fs::recursive_directory_iterator entry(path, unknown);
    for (; !unknown && entry != fs::recursive_directory_iterator(); entry.increment(unknown)) {
      // No command reads files that begin with a dot as text.
      if (entry->path().filename().string().front() == '.') {
        entry.disable_recursion_pending();
      } else {
        require_other(out, entry->path());
      }
    }
  }
}

void add_files_of_model(const fs::path& model, std::vector<fs::path>& files) {
  constexpr std::array<std::string_view, 4> kKinds = {".safetensors", ".json", ".model", ".jinja"};
  std::error_code unknown;
  if (!fs::is_directory(model, unknown)) files.push_back(model);
  fs::directory_iterator entry(model, unknown);
  for (; !unknown && entry != fs::directory_iterator(); entry.increment(unknown)) {
    const std::string kind = entry->path().extension().string();
    if (std::find(kKinds.begin(), kKinds.end(), kind) != kKinds.end()) {
      files.push_back(entry->path());
    }
  }
}

}  // namespace outrider::cli
