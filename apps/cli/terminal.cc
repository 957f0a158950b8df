// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/terminal.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "outrider/error.h"

namespace outrider::cli {
namespace {

std::string escape_controls(std::string_view text, bool keep_layout) {
  std::string escaped;
  for (std::size_t index = 0; index < text.size(); ++index) {
    const auto byte = static_cast<unsigned char>(text[index]);
    const bool layout = keep_layout && (byte == '\n' || byte == '\t');
    // C1 controls (U+0080 to U+009F, C2 80 to C2 9F) start escape sequences on some terminals.
    const bool c1 = byte == 0xC2 && index + 1 < text.size() &&
                    static_cast<unsigned char>(text[index + 1]) >= 0x80 &&
                    static_cast<unsigned char>(text[index + 1]) <= 0x9F;
    if (c1) {
      escaped += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[++index]));
    } else if ((byte < 0x20 && !layout) || byte == 0x7F) {
      escaped += fmt::format("\\x{:02x}", byte);
    } else {
      escaped += text[index];
    }
  }
  return escaped;
}

}  // namespace

std::string counted(std::int64_t n, std::string_view thing) {
  return fmt::format("{} {}{}", n, thing, n == 1 ? "" : "s");
}

void Output::write(std::string_view text) {
  while (error_ == 0 && !text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      // The descriptor has been made non-blocking; waits until it can be written (or has ended).
      pollfd waiting{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
      ::poll(&waiting, 1, -1);
    } else if (errno != EINTR) {
      error_ = errno;
    }
  }
}

void Output::check() const {
  if (error_ == EPIPE) throw OutputClosed();
  if (error_ != 0) throw Error("write", "standard output", std::strerror(error_));
}

bool is_terminal(int descriptor) { return ::isatty(descriptor) == 1; }

bool use_colour(std::string_view mode, int descriptor) {
  if (mode != "auto") return mode == "always";
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  return is_terminal(descriptor) && (no_color == nullptr || *no_color == '\0') && term != nullptr &&
         std::string_view(term) != "dumb";
}

std::string one_line(std::string_view text) { return escape_controls(text, false); }

std::string without_controls(std::string_view text) { return escape_controls(text, true); }

}  // namespace outrider::cli
