// SPDX-License-Identifier: Apache-2.0
#include "apps/flags/verdict_log_flags.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>

#include "apps/cli/flag_values.h"
#include "apps/cli/terminal.h"
#include "outrider/error.h"

namespace outrider::cli {

void add_verdict_log_flags(CLI::App& app, VerdictLogFlags& flags) {
  constexpr const char* kLog = "Verdict log (what outrider train online learns from)";
  add_path(app, "--verdict-log", flags.directory, "DIR",
           "Record each text and the target's likeliest tokens at every generated one. Prompts are "
           "recorded, too")
      ->group(kLog);
  add_integer(app, "--verdict-log-size", flags.mebibytes, 1,
              fmt::format("MiB of the log, in all; the oldest texts make room (default: {})",
                          flags.mebibytes))
      ->group(kLog);
  add_integer(app, "--verdict-log-top", flags.top_k, 1,
              fmt::format("Tokens recorded at each place, 8 bytes each (default: {})", flags.top_k))
      ->group(kLog);
}

void check_verdict_log_flags(const VerdictLogFlags& flags, const CLI::App& app) {
  if (!flags.directory.empty()) return;
  for (const char* name : {"--verdict-log-size", "--verdict-log-top"}) {
    if (app.count(name) > 0) {
      throw UsageError("read flags", name, "--verdict-log DIR beside it", "none");
    }
  }
}

ProgramLog::ProgramLog(const VerdictLogFlags& flags, const Model& target) {
  if (flags.directory.empty()) return;
  log_ = std::make_unique<VerdictLog>(
      target, flags.directory,
      VerdictLogOptions{.max_bytes = std::int64_t{flags.mebibytes} << 20, .top_k = flags.top_k});
}

void ProgramLog::warn_of_failure() {
  if (log_ == nullptr || has_warned_) return;
  const std::string failure = log_->failure();
  if (failure.empty()) return;
  has_warned_ = true;
  fmt::print(stderr, "outrider: {}; nothing more is recorded\n", one_line(failure));
}

}  // namespace outrider::cli
