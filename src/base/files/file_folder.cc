// SPDX-License-Identifier: Apache-2.0
#include "base/files/file_folder.h"

#include <utility>

#include "outrider/error.h"

namespace outrider {

FileFolder::FileFolder(std::string_view name, const Contents& contents) : directory_(name) {
  auto held = std::make_shared<Held>();
  for (const auto& [file, bytes] : contents) {
    held->emplace(file, std::make_shared<const std::string>(bytes));
  }
  held_ = std::move(held);
}

bool FileFolder::has(std::string_view name) const {
  return held_ != nullptr ? held_->contains(name) : is_named(directory_ / name);
}

FileText FileFolder::read(std::string_view name) const {
  if (held_ == nullptr) return FileText(MappedFile(directory_ / name));
  const auto file = held_->find(name);
  if (file == held_->end()) throw Error("open file", place(name), "a file", "none of that name");
  return FileText(file->second);
}

}  // namespace outrider
