// SPDX-License-Identifier: Apache-2.0
#include "apps/logits_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <system_error>
#include <utility>

#include "outrider/error.h"

namespace outrider::cli {
namespace {

static_assert(std::endian::native == std::endian::little, "rows are written as they lie in memory");

[[noreturn]] void fail_to_write(const std::filesystem::path& path, int error) {
  throw Error("write logits", path.string(), std::strerror(error));
}

// The target of a chain of symbolic links, existing or not: it is written, and the links are kept.
std::filesystem::path behind_links(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  constexpr int kMaxLinks = 40;  // Linux's limit
  std::error_code error;
  fs::path end = path;
  for (int n = 0; n <= kMaxLinks; ++n) {
    if (!fs::is_symlink(fs::symlink_status(end, error))) return end;
    const fs::path next = fs::read_symlink(end, error);
    if (error) fail_to_write(path, error.value());
    end = end.parent_path() / next;  // just the target, if it is absolute
  }
  fail_to_write(path, ELOOP);
}

struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

void write_all(int descriptor, std::string_view bytes, const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) fail_to_write(path, errno);
    if (written > 0) bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

LogitsFile::LogitsFile(const std::string& path) : path_(path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::file_status status = fs::status(path_, ignored);
  if (fs::is_directory(status)) fail_to_write(path_, EISDIR);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    if (::access(path_.c_str(), W_OK) != 0) fail_to_write(path_, errno);
    return;
  }
  path_ = behind_links(path_);
  if (fs::exists(status) && ::access(path_.c_str(), W_OK) != 0) fail_to_write(path_, errno);
  temporary_ = path_;
  temporary_ += fmt::format(".{}.part", ::getpid());
  const Descriptor probe{::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)};
  if (probe.number < 0) fail_to_write(path_, errno);
  ::unlink(temporary_.c_str());
}

LogitsFile::~LogitsFile() {
  if (written_) ::unlink(temporary_.c_str());
}

void LogitsFile::write(std::span<const float> logits) {
  const auto bytes = std::as_bytes(logits);
  const std::string_view view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const bool direct = temporary_.empty();
  const int flags = direct ? O_WRONLY : O_WRONLY | O_CREAT | O_EXCL;
  Descriptor file{::open((direct ? path_ : temporary_).c_str(), flags | O_CLOEXEC, 0666)};
  if (file.number < 0) fail_to_write(path_, errno);
  written_ = !direct;
  // A replacement gets the same permissions.
  struct stat replaced = {};
  if (!direct && ::stat(path_.c_str(), &replaced) == 0) {
    (void)!::fchmod(file.number, replaced.st_mode & 0777);
  }
  write_all(file.number, view, path_);
  // Some file systems report a full disk only at close.
  if (::close(std::exchange(file.number, -1)) != 0) fail_to_write(path_, errno);
}

void LogitsFile::commit() {
  if (!written_) return;
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail_to_write(path_, errno);
  written_ = false;
}

}  // namespace outrider::cli
