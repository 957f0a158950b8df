// Rounds as a file of trace events, which ui.perfetto.dev and chrome://tracing open.
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

// Chrome's JSON array of events, a line each. Each batch is a process with a track for its rounds
// and one for each text: the slices of a round are plan, draft (one a drafter), target pass, verify
// and commit; those of a text are queue, prefill and decode, with its part of each round in them.
//
// Lines are written as rounds end: a program that is killed leaves a file that lacks its closing
// bracket alone, which both viewers do without. Thread-safe.
class RoundTrace {
 public:
  // Makes the file; what an earlier one holds goes with the first observer. Throws Error.
  explicit RoundTrace(const std::filesystem::path& path);

  // What writes the rounds of one batch, under this name. The file is complete when the trace and
  // all of its observers are gone.
  std::shared_ptr<RoundObserver> observer(std::string_view name);

  // Why nothing is written any more, one line as an Error's: a full disk, mostly. Empty as long as
  // all is well. Texts go on in either case.
  std::string failure() const;

 private:
  class File;
  class BatchTrace;
  std::shared_ptr<File> file_;
};

}  // namespace outrider

#endif  // OUTRIDER_ROUND_TRACE_H_
