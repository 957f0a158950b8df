// SPDX-License-Identifier: Apache-2.0
// Lines from standard input; interruption (Ctrl-C) and end of input are distinguished.
#ifndef OUTRIDER_APPS_GENERATE_LINE_READER_H_
#define OUTRIDER_APPS_GENERATE_LINE_READER_H_

#include <string>

#include "apps/cli/interrupt.h"

namespace outrider::cli {

enum class LineStatus { line, interrupted, end };

// Reads descriptor 0 directly: nothing else may read from it. Not thread-safe.
class LineReader {
 public:
  // Reads the next line, without its line end (the last line may lack one). `interrupted`: SIGINT
  // came while waiting; the partly typed line is dropped. Throws Error if reading fails.
  LineStatus next(const Interrupt& interrupt, std::string& line);

 private:
  std::string buffer_;  // read and not yet returned
  bool at_end_ = false;
};

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_GENERATE_LINE_READER_H_
