// SPDX-License-Identifier: Apache-2.0
#include "base/files/run_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "outrider/error.h"

namespace outrider {
namespace {

using nlohmann::ordered_json;

// Paths and flags may contain invalid UTF-8, which JSON cannot hold: it becomes U+FFFD.
std::string line_of(const ordered_json& value) {
  return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

// "outrider-eval" -> "outrider eval", the command's name.
std::string command_of(std::string format) {
  std::replace(format.begin(), format.end(), '-', ' ');
  return format;
}

// A value short enough for a message.
std::string brief(const ordered_json& value) {
  constexpr std::size_t kMaxShown = 120;
  std::string text = value.dump(-1, ' ', true);
  if (text.size() > kMaxShown) text = text.substr(0, kMaxShown - 3) + "...";
  return text;
}

// The first difference: a path of members, and the two values.
struct Difference {
  std::string where;
  ordered_json wanted;
  ordered_json found;
};

bool differs(const ordered_json& wanted, const ordered_json& found, const std::string& where,
             Difference& out) {
  if (wanted.is_object() && found.is_object()) {
    for (const auto* side : {&wanted, &found}) {
      for (const auto& entry : side->items()) {
        const std::string inner = where.empty() ? entry.key() : where + "." + entry.key();
        const ordered_json one = wanted.value(entry.key(), ordered_json());
        const ordered_json other = found.value(entry.key(), ordered_json());
        if (differs(one, other, inner, out)) return true;
      }
    }
    return false;
  }
  if (wanted == found) return false;
  out = {.where = where, .wanted = wanted, .found = found};
  return true;
}

}  // namespace

RunFile::RunFile(std::filesystem::path path, std::string format, const ordered_json& run,
                 const ReadLine& read_line)
    : path_(std::move(path)), format_(std::move(format)) {
  descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor_ < 0) throw Error("open records", path_.string(), std::strerror(errno));
  try {
    struct stat state = {};
    if (::fstat(descriptor_, &state) != 0 || !S_ISREG(state.st_mode)) {
      throw Error("open records", path_.string(), "a regular file", "a device or a pipe");
    }
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
      throw Error("open records", path_.string(), "no other process that writes it", "one");
    }
    read(run, read_line);
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

RunFile::~RunFile() { ::close(descriptor_); }

void RunFile::read(const ordered_json& run, const ReadLine& read_line) {
  std::string text;
  std::vector<char> buffer(1 << 16);
  ssize_t n_read = 0;
  while ((n_read = ::read(descriptor_, buffer.data(), buffer.size())) != 0) {
    if (n_read < 0) throw Error("read records", path_.string(), std::strerror(errno));
    text.append(buffer.data(), static_cast<std::size_t>(n_read));
  }
  // Compared as written: a path or a flag may contain bytes that JSON cannot hold.
  const std::string head_line = line_of({{"format", format_}, {"version", 1}, {"run", run}});
  const ordered_json head = ordered_json::parse(head_line);
  const std::string records = "records of " + command_of(format_);
  // Anything after the last newline was being written when the program ended.
  const std::size_t last = text.rfind('\n');
  if (last == std::string::npos && !head_line.starts_with(text)) {
    throw Error("read records", path_.string(), records, "another file");
  }
  text.resize(last == std::string::npos ? 0 : last + 1);
  std::string_view rest = text;
  for (int line = 1; !rest.empty(); ++line) {
    const std::string_view bytes = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(bytes.size() + 1);
    const std::string place = fmt::format("{}, line {}", path_.string(), line);
    if (line > 1) {
      read_line(bytes, place);
      continue;
    }
    const ordered_json found = ordered_json::parse(bytes, nullptr, false);
    if (!found.is_object() || found.value("format", ordered_json()) != format_) {
      throw Error("read records", place, records, "another file");
    }
    Difference difference;
    if (differs(head, found, "", difference)) {
      throw Error(
          "read records", path_.string(),
          fmt::format("records of this run ({} {})", difference.where, brief(difference.wanted)),
          fmt::format("those of another ({})", brief(difference.found)));
    }
  }
  n_bytes_ = static_cast<std::int64_t>(text.size());
  // Nothing is changed before the whole file is known to be valid.
  if (::ftruncate(descriptor_, n_bytes_) != 0) {
    throw Error("write records", path_.string(), std::strerror(errno));
  }
  if (n_bytes_ == 0) append(head_line);
}

void RunFile::append(const std::string& line) {
  std::string bytes = line;
  bytes += '\n';
  std::size_t n_written = 0;
  while (n_written < bytes.size()) {
    const ssize_t n = ::pwrite(descriptor_, bytes.data() + n_written, bytes.size() - n_written,
                               n_bytes_ + static_cast<std::int64_t>(n_written));
    if (n >= 0) {
      n_written += static_cast<std::size_t>(n);
    } else if (errno != EINTR) {
      const int error = errno;
      // The next run would drop half a line as well, but readers should not meet it.
      if (::ftruncate(descriptor_, n_bytes_) != 0) errno = error;
      throw Error("write records", path_.string(), std::strerror(error));
    }
  }
  n_bytes_ += static_cast<std::int64_t>(bytes.size());
}

}  // namespace outrider
