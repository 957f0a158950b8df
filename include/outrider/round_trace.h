// SPDX-License-Identifier: Apache-2.0
// Writes rounds as a file of trace events for ui.perfetto.dev and chrome://tracing.
//
//   outrider::RoundTrace trace("trace.json");
//   outrider::Batch batch(model, drafters, {}, {.observer = trace.observer("model")});
#ifndef OUTRIDER_ROUND_TRACE_H_
#define OUTRIDER_ROUND_TRACE_H_

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "outrider/round_observer.h"

namespace outrider {

// Writes Chrome's JSON array of events, one per line. Each batch is a process with a track for its
// rounds and one for each text. The slices of a round are plan, draft (one per drafter), target
// pass, verify and commit. Those of a text are queue, prefill and decode, with its part of each
// round nested in them.
//
// Lines are written as rounds end. A killed program leaves a file without the closing bracket,
// which both viewers accept. Thread-safe.
class RoundTrace {
 public:
  // Creates the file. An existing file is replaced when the first observer is made. Throws Error.
  explicit RoundTrace(const std::filesystem::path& path);

  // Makes the observer that writes the rounds of one batch under this name. The file is complete
  // when the trace and all of its observers are destroyed.
  std::shared_ptr<RoundObserver> observer(std::string_view name);

  // Why writing has stopped, one line in the form of an Error, for example a full disk; empty: no
  // failure. Texts continue in either case.
  std::string failure() const;

 private:
  class File;
  class BatchTrace;
  std::shared_ptr<File> file_;
};

}  // namespace outrider

#endif  // OUTRIDER_ROUND_TRACE_H_
