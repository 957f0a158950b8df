#include "base/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "outrider/error.h"

namespace outrider {

namespace {

// What a symbolic link points to in the end, whether it is there or not; other paths as they are.
std::filesystem::path through_links(std::filesystem::path path) {
  constexpr int kMostLinks = 40;  // Linux's own limit
  std::error_code no_link;
  for (int n = 0; n < kMostLinks; ++n) {
    const std::filesystem::path next = std::filesystem::read_symlink(path, no_link);
    if (no_link) break;
    path = path.parent_path() / next;  // an absolute one replaces the whole
  }
  return path;
}

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path path)
    : path_(through_links(std::move(path))), partial_(path_.string() + kPartialSuffix) {
  std::error_code unknown;  // what cannot be looked at fails below
  if (std::filesystem::is_symlink(path_, unknown)) {
    throw Error("write file", path_.string(), "a link that leads somewhere", "a circle of links");
  }
  const auto there = std::filesystem::status(path_, unknown);
  if (std::filesystem::exists(there) && !std::filesystem::is_regular_file(there) &&
      !std::filesystem::is_directory(there)) {
    // A device or a pipe would be replaced by a file of its name.
    throw Error("write file", path_.string(), "a regular file, or none yet", "something else");
  }
  open_partial();
  // What takes a file's place is for the same eyes. (What a kill leaves is to stay replaceable.)
  if (std::filesystem::is_regular_file(there)) {
    mode_ = static_cast<::mode_t>(there.permissions());
    ::fchmod(descriptor_, *mode_ | S_IWUSR);
  }
}

// Locked for as long as it is written: its name is everybody's, and what a program that was killed
// has left of it is to be replaced.
void AtomicFile::open_partial() {
  for (;;) {
    descriptor_ =
        ::open(partial_.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
    if (descriptor_ < 0) {
      if (errno != ELOOP && errno != ENXIO) fail(errno);
      throw Error("write file", partial_, "a regular file, or none yet", "something else");
    }
    struct stat opened = {};
    struct stat named = {};
    bool is_ours = ::fstat(descriptor_, &opened) == 0;
    if (is_ours && !S_ISREG(opened.st_mode)) {
      ::close(descriptor_);
      throw Error("write file", partial_, "a regular file, or none yet", "something else");
    }
    // (A file system without locks takes any number of writers.)
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      ::close(descriptor_);
      throw Error("write file", path_.string(), "no other process that writes it", "one");
    }
    // Whoever had the lock before may have given it its own name since it was opened.
    is_ours = is_ours && ::lstat(partial_.c_str(), &named) == 0 && named.st_ino == opened.st_ino &&
              named.st_dev == opened.st_dev;
    if (is_ours && ::ftruncate(descriptor_, 0) == 0) return;
    const int error = errno;
    ::close(descriptor_);
    if (is_ours) fail(error);
  }
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  ::unlink(partial_.c_str());  // under the lock: it is this writer's
  ::close(descriptor_);
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n_written = ::write(descriptor_, bytes.data(), bytes.size());
    if (n_written < 0) {
      if (errno == EINTR) continue;
      fail(errno);
    }
    bytes = bytes.subspan(static_cast<std::size_t>(n_written));
  }
}

void AtomicFile::overwrite(std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n_written =
        ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n_written < 0) {
      if (errno == EINTR) continue;
      fail(errno);
    }
    offset += static_cast<std::uint64_t>(n_written);
    bytes = bytes.subspan(static_cast<std::size_t>(n_written));
  }
}

void AtomicFile::commit() {
  // The data before the name: a name that points at blocks not yet written would survive a power
  // cut as an empty file.
  if (mode_ && ::fchmod(descriptor_, *mode_) != 0) fail(errno);
  if (::fsync(descriptor_) != 0) fail(errno);
  if (::rename(partial_.c_str(), path_.c_str()) != 0) fail(errno);
  ::close(std::exchange(descriptor_, -1));
  const std::filesystem::path folder = path_.has_parent_path() ? path_.parent_path() : ".";
  const int directory = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return;  // the file stands; only its survival of a power cut is less sure
  ::fsync(directory);
  ::close(directory);
}

void AtomicFile::fail(int error) const {
  throw Error("write file", path_.string(), std::generic_category().message(error));
}

void write_file_atomically(const std::filesystem::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

}  // namespace outrider
