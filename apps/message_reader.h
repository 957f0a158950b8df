// Messages from standard input: a line each, or several lines between marks.
#ifndef OUTRIDER_APPS_MESSAGE_READER_H_
#define OUTRIDER_APPS_MESSAGE_READER_H_

#include <functional>
#include <string>

#include "interrupt.h"
#include "line_reader.h"

namespace outrider::cli {

struct Message {
  std::string text;
  bool is_block = false;  // stood between marks: neither blank nor a command, whatever it holds
};

// A line that begins with """ begins a block, which ends with the next line that ends with """. The
// marks, and a line end directly behind the first and before the last, are no part of the message.
// Reads descriptor 0 itself: nothing else may. Not thread-safe.
class MessageReader {
 public:
  // The next message. `interrupted`: SIGINT came while waiting; what was typed of the message is
  // forgotten. on_further_line is called before each line of a block but its first is read. Throws
  // Error if reading fails, or if the input ends within a block.
  LineStatus next(const Interrupt& interrupt, const std::function<void()>& on_further_line,
                  Message& message);

 private:
  LineReader lines_;
};

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_MESSAGE_READER_H_
