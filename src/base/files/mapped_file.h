// SPDX-License-Identifier: Apache-2.0
// A file mapped read-only into memory.
#ifndef OUTRIDER_BASE_FILES_MAPPED_FILE_H_
#define OUTRIDER_BASE_FILES_MAPPED_FILE_H_

#include <cstddef>
#include <filesystem>
#include <span>

namespace outrider {

// Whether a path exists, for optional files. A dangling link, such as an interrupted download
// leaves, counts as existing.
bool is_named(const std::filesystem::path& path);

// Owns a read-only private mapping of a regular file; an empty file gives an empty span. The bytes
// stay valid at their address during the object's lifetime, also when it is moved. Thread-safe to
// read.
class MappedFile {
 public:
  // Throws Error if the path is not a readable regular file, or is a Git LFS pointer (the few lines
  // that replace a large file until it is downloaded).
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }

  // Returns the memory of a part of these bytes to the system; later or concurrent reads fetch them
  // from the file again. A request: no effect without the system's support, or for bytes from
  // elsewhere.
  void release(std::span<const std::byte> part) const;

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace outrider

#endif  // OUTRIDER_BASE_FILES_MAPPED_FILE_H_
