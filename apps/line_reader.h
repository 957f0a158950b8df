// Lines from standard input, with Ctrl-C and end of input told apart.
#ifndef OUTRIDER_APPS_LINE_READER_H_
#define OUTRIDER_APPS_LINE_READER_H_

#include <string>

#include "interrupt.h"

namespace outrider::cli {

enum class LineStatus { line, interrupted, end };

// Reads descriptor 0 itself: nothing else may. Not thread-safe.
class LineReader {
 public:
  // The next line without its line end (a last line need not have one). `interrupted`: SIGINT came
  // while waiting; what was typed of the line is forgotten. Throws Error if reading fails.
  LineStatus next(const Interrupt& interrupt, std::string& line);

 private:
  std::string buffer_;  // read and not yet returned
  bool at_end_ = false;
};

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_LINE_READER_H_
