// SPDX-License-Identifier: Apache-2.0
#include "engine/drafting/drafter_updates.h"

#include <sys/stat.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "engine/speculation.h"
#include "model/load_model.h"

namespace outrider {
namespace fs = std::filesystem;

DrafterUpdates::DrafterUpdates(PlannedUpdates plan, ModelOptions options)
    : plan_(std::move(plan)), options_(std::move(options)) {
  options_.progress = {};  // its owner may be gone when an update arrives
  std::error_code ignored;
  if (fs::equivalent(plan_.place, plan_.in_use, ignored)) seen_ = look();
}

DrafterUpdates::Marks DrafterUpdates::look() const {
  const auto mark_of = [](const fs::path& path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return FileMark{};
    return FileMark{.inode = status.st_ino,
                    .n_bytes = status.st_size,
                    .modified_ns = std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 +
                                   status.st_mtim.tv_nsec};
  };
  if (const FileMark itself = mark_of(plan_.place); itself != FileMark{}) return {itself};
  const FileMark config = mark_of(plan_.place / "config.json");
  if (config == FileMark{}) return {};  // not there yet, or incomplete
  return {config, mark_of(plan_.place / "model.safetensors"),
          mark_of(plan_.place / "model.safetensors.index.json"),
          mark_of(plan_.place / "tokenizer.json")};
}

std::unique_ptr<Drafter> DrafterUpdates::take(const Model& target) {
  // Recorded before reading: if files are replaced during the load, the next check finds them.
  const Marks marks = look();
  if (marks == seen_ || marks == Marks{}) return nullptr;
  seen_ = marks;
  return plan_.make(drafter_materials(target, make_load_options(options_)));
}

}  // namespace outrider
