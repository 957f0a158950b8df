// SPDX-License-Identifier: Apache-2.0
#include "base/files/atomic_file.h"

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

// The final target of a symbolic link, existing or not; other paths unchanged.
std::filesystem::path through_links(std::filesystem::path path) {
  constexpr int kMaxLinks = 40;  // Linux's own limit
  std::error_code no_link;
  for (int n = 0; n < kMaxLinks; ++n) {
    const std::filesystem::path next = std::filesystem::read_symlink(path, no_link);
    if (no_link) break;
    path = path.parent_path() / next;  // an absolute target replaces the whole path
  }
  return path;
}

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path path)
    : path_(through_links(std::move(path))), partial_(path_.string() + kPartialSuffix) {
  std::error_code unknown;  // a file that cannot be examined fails below
  if (std::filesystem::is_symlink(path_, unknown)) {
    throw Error("write file", path_.string(), "a link that leads somewhere", "a circle of links");
  }
  struct stat replaced = {};
  const bool replaces = ::stat(path_.c_str(), &replaced) == 0;
  if (replaces && !S_ISREG(replaced.st_mode) && !S_ISDIR(replaced.st_mode)) {
    // Renaming over it would replace a device or a pipe by a file.
    throw Error("write file", path_.string(), "a regular file, or none yet", "something else");
  }
  make_partial(replaces ? replaced.st_mode & 0777 : 0666);
  if (replaces) inherit(replaced);
}

// Locked while it is written: other processes use the same name, and a file that a killed program
// has left under it is to be replaced.
void AtomicFile::make_partial(::mode_t mode) {
  constexpr int kMaxTries = 100;  // other writers may create and remove it meanwhile
  for (int n = 0; n < kMaxTries; ++n) {
    descriptor_ =
        ::open(partial_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (descriptor_ >= 0) {
      if (is_ours(descriptor_)) return;
      ::close(descriptor_);
    } else if (errno == EEXIST) {
      remove_leftover();
    } else {
      fail(errno);
    }
  }
  throw Error("write file", path_.string(), "no other process that writes it", "several");
}

// Takes the lock. Throws if another process has it; false if the name belongs to another file by
// now.
bool AtomicFile::is_ours(int descriptor) const {
  struct stat opened = {};
  struct stat named = {};
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(descriptor);
    throw Error("write file", path_.string(), "no other process that writes it", "one");
  }  // (A file system without locks permits several writers.)
  if (::fstat(descriptor, &opened) == 0 && ::lstat(partial_.c_str(), &named) == 0) {
    return named.st_ino == opened.st_ino && named.st_dev == opened.st_dev;
  }
  if (errno == ENOENT) return false;
  const int error = errno;
  ::close(descriptor);
  fail(error);
}

void AtomicFile::remove_leftover() const {
  const int leftover = ::open(partial_.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (leftover < 0 && errno == ENOENT) return;
  if (leftover < 0 && errno != ELOOP && errno != ENXIO) fail(errno);
  struct stat state = {};
  if (leftover < 0 || ::fstat(leftover, &state) != 0 || !S_ISREG(state.st_mode)) {
    if (leftover >= 0) ::close(leftover);
    throw Error("write file", partial_, "a regular file, or none yet", "something else");
  }
  const bool is_left = is_ours(leftover);
  const int error = is_left && ::unlink(partial_.c_str()) != 0 ? errno : 0;
  ::close(leftover);
  if (error != 0 && error != ENOENT) fail(error);
}

// The new file gets the permissions of the replaced one, as far as this process may set them:
// without its group, no group permissions.
void AtomicFile::inherit(const struct stat& replaced) const {
  ::mode_t mode = replaced.st_mode & 0777;
  struct stat made = {};
  if (::fchown(descriptor_, replaced.st_uid, replaced.st_gid) != 0 &&
      ::fchown(descriptor_, static_cast<::uid_t>(-1), replaced.st_gid) != 0 &&
      ::fstat(descriptor_, &made) == 0 && made.st_gid != replaced.st_gid) {
    mode &= ~static_cast<::mode_t>(S_IRWXG);
  }
  (void)!::fchmod(descriptor_, mode);  // it was created with no more permissions than that
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  ::unlink(partial_.c_str());  // under the lock, so it belongs to this writer
  ::close(descriptor_);
}

void AtomicFile::reserve(std::uint64_t n_bytes) const {
#if defined(__linux__)
  if (n_bytes == 0) return;
  if (::fallocate(descriptor_, FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(n_bytes)) == 0) return;
  if (errno == ENOSPC || errno == EDQUOT || errno == EFBIG) fail(errno);
#else
  (void)n_bytes;
#endif
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
  // Data before name: a name that refers to unwritten blocks would be an empty file after a power
  // cut.
  if (::fsync(descriptor_) != 0) fail(errno);
  if (::rename(partial_.c_str(), path_.c_str()) != 0) fail(errno);
  ::close(std::exchange(descriptor_, -1));
  const std::filesystem::path folder = path_.has_parent_path() ? path_.parent_path() : ".";
  const int directory = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  // The file is in place; only its survival of a power cut is less certain.
  if (directory < 0) return;
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
