// SPDX-License-Identifier: Apache-2.0
// A file that appears whole or not at all.
#ifndef OUTRIDER_BASE_FILES_ATOMIC_FILE_H_
#define OUTRIDER_BASE_FILES_ATOMIC_FILE_H_

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace outrider {

// Writes to a partial file beside the final path (with kPartialSuffix added), and renames it when
// all of it has reached the disk. Until commit() returns, an existing file stays unchanged, even on
// a full disk, a kill or a power cut. The new file has the permissions of the old one, and its
// owner and group if the process may set them. If the path is a symbolic link, its target is
// replaced and the link stays. One writer per path at a time, over all processes, by a lock. Not
// thread-safe.
class AtomicFile {
 public:
  // Reserved for these partial files: an existing one was left by a killed writer, and is replaced.
  static constexpr const char* kPartialSuffix = ".outrider-partial";

  // Throws Error("write file", ...) if the partial file cannot be created or another writer has it.
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();  // without commit(): removes the partial file
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // Announces about n_bytes in all, so that a disk without room for them is an Error now, not after
  // all the work. Has no effect on file systems without support.
  void reserve(std::uint64_t n_bytes) const;
  // Throws Error with the file and the system's reason.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  // Overwrites written bytes from `offset` on; later writes continue at the end. For headers that
  // are known last.
  void overwrite(std::uint64_t offset, std::span<const std::byte> bytes);
  void commit();

 private:
  void make_partial(::mode_t mode);
  bool is_ours(int descriptor) const;
  void remove_leftover() const;
  void inherit(const struct ::stat& replaced) const;
  [[noreturn]] void fail(int error) const;

  std::filesystem::path path_;
  std::string partial_;
  int descriptor_ = -1;
};

void write_file_atomically(const std::filesystem::path& path, std::string_view text);

}  // namespace outrider

#endif  // OUTRIDER_BASE_FILES_ATOMIC_FILE_H_
