// SPDX-License-Identifier: Apache-2.0
#include "base/files/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <string_view>
#include <system_error>
#include <utility>

#include "outrider/error.h"

namespace outrider {

bool is_named(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(std::filesystem::symlink_status(path, ignored));
}

MappedFile::MappedFile(const std::filesystem::path& path) {
  constexpr const char* kOperation = "open file";
  // O_NONBLOCK: opening a named pipe would wait for its writer, only to refuse it.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    throw Error(kOperation, path.string(), "a readable file", std::strerror(errno));
  }
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor);
    throw Error(kOperation, path.string(), "a regular file", "something else");
  }
  if (status.st_size > 0) {
    const auto n_bytes = static_cast<std::size_t>(status.st_size);
    void* address = ::mmap(nullptr, n_bytes, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (address == MAP_FAILED) {
      const int code = errno;
      ::close(descriptor);
      throw Error(kOperation, path.string(), "memory to map it", std::strerror(code));
    }
    bytes_ = {static_cast<const std::byte*>(address), n_bytes};
  }
  ::close(descriptor);
  // https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md
  constexpr std::string_view kPointer = "version https://git-lfs.github.com/spec/";
  if (bytes_.size() >= kPointer.size() &&
      std::memcmp(bytes_.data(), kPointer.data(), kPointer.size()) == 0) {
    ::munmap(const_cast<void*>(static_cast<const void*>(bytes_.data())), bytes_.size());
    throw Error(kOperation, path.string(), "the file itself",
                "a Git LFS pointer to it (`git lfs pull`, or a download from the hub, fetches it)");
  }
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

void MappedFile::release(std::span<const std::byte> part) const {
  // Releasing memory that is not mapped from a file would lose it.
  const std::less_equal<const std::byte*> up_to;
  const bool inside = up_to(bytes_.data(), part.data()) &&
                      up_to(part.data() + part.size(), bytes_.data() + bytes_.size());
  if (part.empty() || !inside) return;
  // Releases whole pages; the mapping begins at a page. A neighbour's bytes on the first and last
  // page are read again from the file, like these.
  static const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto at = static_cast<std::size_t>(part.data() - bytes_.data());
  const std::size_t begin = at / page * page;
  auto* const first = const_cast<std::byte*>(bytes_.data()) + begin;
  ::madvise(static_cast<void*>(first), at + part.size() - begin, MADV_DONTNEED);
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) {
    ::munmap(const_cast<void*>(static_cast<const void*>(bytes_.data())), bytes_.size());
  }
}

}  // namespace outrider
