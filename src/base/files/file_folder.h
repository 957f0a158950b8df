// SPDX-License-Identifier: Apache-2.0
// The small files that describe a model: in a directory, or in memory under the same names.
#ifndef OUTRIDER_BASE_FILES_FILE_FOLDER_H_
#define OUTRIDER_BASE_FILES_FILE_FOLDER_H_

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/files/mapped_file.h"

namespace outrider {

// One file's bytes, mapped or in memory.
class FileText {
 public:
  explicit FileText(MappedFile file) : file_(std::move(file)) {}
  explicit FileText(std::shared_ptr<const std::string> bytes) : bytes_(std::move(bytes)) {}

  std::string_view text() const {
    if (bytes_ != nullptr) return *bytes_;
    return {reinterpret_cast<const char*>(file_->bytes().data()), file_->bytes().size()};
  }

 private:
  std::optional<MappedFile> file_;
  std::shared_ptr<const std::string> bytes_;
};

// Immutable, cheap to copy; thread-safe.
class FileFolder {
 public:
  using Contents = std::map<std::string, std::string, std::less<>>;  // by name

  explicit FileFolder(std::filesystem::path directory) : directory_(std::move(directory)) {}
  // name: used instead of a directory's path in messages.
  FileFolder(std::string_view name, const Contents& contents);

  // As is_named().
  bool has(std::string_view name) const;
  // Throws Error if there is no such file.
  FileText read(std::string_view name) const;
  // The name of a file there, existing or not, in messages.
  std::string place(std::string_view name) const { return (directory_ / name).string(); }
  const std::filesystem::path& directory() const { return directory_; }

 private:
  using Held = std::map<std::string, std::shared_ptr<const std::string>, std::less<>>;

  std::filesystem::path directory_;
  std::shared_ptr<const Held> held_;  // null: the files are in the directory
};

}  // namespace outrider

#endif  // OUTRIDER_BASE_FILES_FILE_FOLDER_H_
