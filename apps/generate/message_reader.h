// SPDX-License-Identifier: Apache-2.0
// Reads messages from standard input: one line each, or several lines between """ marks.
#ifndef OUTRIDER_APPS_GENERATE_MESSAGE_READER_H_
#define OUTRIDER_APPS_GENERATE_MESSAGE_READER_H_

#include <functional>
#include <string>

#include "apps/cli/interrupt.h"
#include "apps/generate/line_reader.h"

namespace outrider::cli {

struct Message {
  std::string text;
  bool is_block = false;  // was between marks: never empty input or a command
};

// A line that begins with """ begins a block; the next line that ends with """ ends it. The marks
// are not part of the message, and neither is a line end directly after the first mark or before
// the last. Reads descriptor 0 directly: nothing else may read from it. Not thread-safe.
class MessageReader {
 public:
  // Reads the next message. `interrupted`: SIGINT came while waiting; the partly typed message is
  // dropped. on_further_line is called before each line of a block except the first is read. Throws
  // Error if reading fails, or if the input ends within a block.
  LineStatus next(const Interrupt& interrupt, const std::function<void()>& on_further_line,
                  Message& message);

 private:
  LineReader lines_;
};

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_GENERATE_MESSAGE_READER_H_
