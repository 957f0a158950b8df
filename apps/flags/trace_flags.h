// SPDX-License-Identifier: Apache-2.0
// The --trace flag of commands that can record a trace of their rounds.
#ifndef OUTRIDER_APPS_FLAGS_TRACE_FLAGS_H_
#define OUTRIDER_APPS_FLAGS_TRACE_FLAGS_H_

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>

#include "apps/flags/model_flags.h"
#include "outrider/round_trace.h"

namespace outrider::cli {

CLI::Option* add_trace_flag(CLI::App& app, std::string& file);

// The trace of one program, if requested.
class ProgramTrace {
 public:
  // file: "" for none. Throws Error if it cannot be written, or is one of the models' files.
  ProgramTrace(const std::string& file, const ModelFlags& models);

  // The observer for the batch that runs this model; null without a trace.
  std::shared_ptr<RoundObserver> observer(const std::string& model);
  // Reports on standard error, once, that recording has stopped after a failure. On one thread at a
  // time.
  void warn_of_failure();

 private:
  std::optional<RoundTrace> trace_;
  bool has_warned_ = false;
};

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_FLAGS_TRACE_FLAGS_H_
