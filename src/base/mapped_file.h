// A file, read-only, mapped into memory.
#ifndef OUTRIDER_BASE_MAPPED_FILE_H_
#define OUTRIDER_BASE_MAPPED_FILE_H_

#include <cstddef>
#include <filesystem>
#include <span>

namespace outrider {

// Whether something bears this name: of files that may be missing, those that are to be read. A
// link that leads nowhere, as an interrupted download leaves it, is no missing file.
bool is_named(const std::filesystem::path& path);

// Owns a read-only private mapping of a regular file; an empty file gives an empty span. The bytes
// stay valid and at their address until the object dies, also when it is moved. Thread-safe to
// read.
class MappedFile {
 public:
  // Throws Error if the path is no readable regular file, or a Git LFS pointer: the few lines that
  // stand for a large file until it is downloaded.
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }

  // Gives the memory behind a part of these bytes back to the system; whoever reads them, meanwhile
  // or afterwards, has them fetched from the file again. A wish: nothing happens where the system
  // does not listen, nor to bytes from elsewhere.
  void release(std::span<const std::byte> part) const;

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace outrider

#endif  // OUTRIDER_BASE_MAPPED_FILE_H_
