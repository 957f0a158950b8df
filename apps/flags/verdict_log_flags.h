// SPDX-License-Identifier: Apache-2.0
// Flags of commands that can record the target's verdicts, for `outrider train online`.
#ifndef OUTRIDER_APPS_FLAGS_VERDICT_LOG_FLAGS_H_
#define OUTRIDER_APPS_FLAGS_VERDICT_LOG_FLAGS_H_

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "outrider/model.h"
#include "outrider/verdict_log.h"

namespace outrider::cli {

struct VerdictLogFlags {
  std::string directory;  // empty: no log
  int mebibytes = 64;
  int top_k = 32;
};

void add_verdict_log_flags(CLI::App& app, VerdictLogFlags& flags);

// Throws UsageError if flags set details of a log but no log is requested.
void check_verdict_log_flags(const VerdictLogFlags& flags, const CLI::App& app);

// The log of one program, if requested.
class ProgramLog {
 public:
  // Throws Error or UsageError as VerdictLog does.
  ProgramLog(const VerdictLogFlags& flags, const Model& target);

  VerdictLog* log() { return log_.get(); }
  // Reports on standard error, once, that recording has stopped after a failure.
  void warn_of_failure();

 private:
  std::unique_ptr<VerdictLog> log_;
  bool has_warned_ = false;
};

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_FLAGS_VERDICT_LOG_FLAGS_H_
