// SPDX-License-Identifier: Apache-2.0
// Standard output, and its special cases on a terminal.
#ifndef OUTRIDER_APPS_CLI_TERMINAL_H_
#define OUTRIDER_APPS_CLI_TERMINAL_H_

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace outrider::cli {

// The reader of standard output has closed it. The program prints no message, but does not exit
// with success.
class OutputClosed : public std::runtime_error {
 public:
  OutputClosed() : std::runtime_error("standard output was closed") {}
};

// Standard output: results only. Unbuffered, so that text appears at once. After a failure nothing
// more is written, and check() throws. Not thread-safe.
class Output {
 public:
  void write(std::string_view text);
  bool failed() const { return error_ != 0; }
  // Throws OutputClosed after EPIPE, Error after any other failure.
  void check() const;

 private:
  int error_ = 0;  // errno of the first failed write
};

bool is_terminal(int descriptor);

// Whether to colour output to `descriptor`. mode: "always", "never", or "auto": a terminal that
// supports colours, and no NO_COLOR in the environment (no-color.org).
bool use_colour(std::string_view mode, int descriptor);

// "1 item", "2 items".
std::string counted(std::int64_t n, std::string_view thing);

// Replaces control characters by \xNN, tabs and newlines included: for messages of one line.
std::string one_line(std::string_view text);

// The same except for tabs and newlines, for untrusted text printed to a terminal: a model must not
// be able to send escape sequences.
std::string without_controls(std::string_view text);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_CLI_TERMINAL_H_
