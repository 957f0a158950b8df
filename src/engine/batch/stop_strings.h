// SPDX-License-Identifier: Apache-2.0
// Ends a text before the first of some strings, releasing only text that cannot be part of one.
#ifndef OUTRIDER_ENGINE_BATCH_STOP_STRINGS_H_
#define OUTRIDER_ENGINE_BATCH_STOP_STRINGS_H_

#include <string>
#include <string_view>
#include <vector>

namespace outrider {

// Push text as it comes; a stop string may span any number of pushes. Among strings that end at the
// same byte the one that starts first wins. Not thread-safe.
class StopStrings {
 public:
  // Empty strings are ignored.
  explicit StopStrings(std::vector<std::string> strings);

  // Adds more text; appends to `out` the part that certainly precedes any stop string.
  void push(std::string_view text, std::string& out);
  // Called at the end of the text: appends what was held back (nothing if a stop string was found).
  void finish(std::string& out);
  bool found() const { return found_; }
  // The string that was found; empty before.
  const std::string& which() const { return which_; }

 private:
  std::vector<std::string> strings_;
  std::string held_;
  std::string which_;
  bool found_ = false;
};

}  // namespace outrider

#endif  // OUTRIDER_ENGINE_BATCH_STOP_STRINGS_H_
