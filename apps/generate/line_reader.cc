// SPDX-License-Identifier: Apache-2.0
#include "apps/generate/line_reader.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "outrider/error.h"

namespace outrider::cli {

LineStatus LineReader::next(const Interrupt& interrupt, std::string& line) {
  for (;;) {
    if (interrupt.raised()) {
      buffer_.clear();
      return LineStatus::interrupted;
    }
    const std::size_t end = buffer_.find('\n');
    if (end != std::string::npos || (at_end_ && !buffer_.empty())) {
      line = buffer_.substr(0, end);
      buffer_.erase(0, end == std::string::npos ? end : end + 1);
      if (!line.empty() && line.back() == '\r') line.pop_back();
      return LineStatus::line;
    }
    if (at_end_) return LineStatus::end;
    char bytes[4096];
    const ssize_t n_read = ::read(STDIN_FILENO, bytes, sizeof(bytes));
    if (n_read > 0) {
      buffer_.append(bytes, static_cast<std::size_t>(n_read));
    } else if (n_read == 0) {
      at_end_ = true;
    } else if (errno != EINTR) {
      throw Error("read text", "standard input", std::strerror(errno));
    }
  }
}

}  // namespace outrider::cli
