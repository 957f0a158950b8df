#include "logits_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <system_error>

#include "outrider/error.h"

namespace outrider::cli {
namespace {

static_assert(std::endian::native == std::endian::little, "rows are written as they lie in memory");

[[noreturn]] void fail(const std::filesystem::path& path, int error) {
  throw Error("write logits", path.string(), std::strerror(error));
}

// An open descriptor; the file it created is removed again unless kept.
struct Scratch {
  int descriptor = -1;
  const char* remove = nullptr;
  ~Scratch() {
    if (descriptor >= 0) ::close(descriptor);
    if (remove != nullptr) ::unlink(remove);
  }
};

void write_all(int descriptor, std::string_view bytes, const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) fail(path, errno);
    if (written > 0) bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

LogitsFile::LogitsFile(const std::string& path) : path_(path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::file_status status = fs::status(path_, ignored);
  if (fs::is_directory(status)) fail(path_, EISDIR);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    if (::access(path_.c_str(), W_OK) != 0) fail(path_, errno);
    return;
  }
  // Through a symbolic link the file it names is replaced, not the link.
  const fs::path resolved = fs::weakly_canonical(path_, ignored);
  if (!ignored && !resolved.empty()) path_ = resolved;
  if (fs::exists(status) && ::access(path_.c_str(), W_OK) != 0) fail(path_, errno);
  temporary_ = path_;
  temporary_ += fmt::format(".{}.part", ::getpid());
  Scratch probe;
  probe.descriptor = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (probe.descriptor < 0) fail(path_, errno);
  probe.remove = temporary_.c_str();
}

void LogitsFile::write(std::span<const float> logits) const {
  const auto bytes = std::as_bytes(logits);
  const std::string_view view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  Scratch file;
  if (temporary_.empty()) {
    file.descriptor = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    if (file.descriptor < 0) fail(path_, errno);
    write_all(file.descriptor, view, path_);
    return;
  }
  file.descriptor = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file.descriptor < 0) fail(path_, errno);
  file.remove = temporary_.c_str();
  write_all(file.descriptor, view, path_);
  const int descriptor = file.descriptor;
  file.descriptor = -1;
  if (::close(descriptor) != 0) fail(path_, errno);  // some file systems report a full disk here
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail(path_, errno);
  file.remove = nullptr;
}

}  // namespace outrider::cli
