// A file that appears whole or not at all.
#ifndef OUTRIDER_BASE_ATOMIC_FILE_H_
#define OUTRIDER_BASE_ATOMIC_FILE_H_

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace outrider {

// Writes beside the final place, under the name with kPartialSuffix added, and renames when all of
// it has reached the disk. Until commit() returns, what stood there before stays as it was,
// whatever happens: a full disk, a kill, a power cut; what replaces it has its permissions, and its
// owner and group if the process may give them. Where the place is a symbolic link, what it points
// to is replaced and the link stays. One writer per path at a time, over all processes: it holds a
// lock. Not thread-safe.
class AtomicFile {
 public:
  // Nobody else's files have names that end so: one that is there is what a writer that was killed
  // has left, and is replaced.
  static constexpr const char* kPartialSuffix = ".outrider-partial";

  // Throws Error("write file", ...) if the partial file cannot be made or another writer has it.
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();  // without commit(): removes the partial file
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // Says that about n_bytes will be written in all: a disk that has no room for them is an Error
  // now, not after all the work. A wish: nothing happens where the file system does not listen.
  void reserve(std::uint64_t n_bytes) const;
  // Throws Error naming the file and the system's reason.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  // Over bytes that have been written, from `offset` on; later writes go on where they were. For
  // headers that are known last.
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

#endif  // OUTRIDER_BASE_ATOMIC_FILE_H_
