// SPDX-License-Identifier: Apache-2.0
#include "apps/flags/trace_flags.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <vector>

#include "apps/cli/flag_values.h"
#include "apps/cli/output_place.h"
#include "apps/cli/terminal.h"

namespace outrider::cli {

CLI::Option* add_trace_flag(CLI::App& app, std::string& file) {
  return add_path(app, "--trace", file, "FILE",
                  "Write what each round does and takes, for ui.perfetto.dev or chrome://tracing");
}

ProgramTrace::ProgramTrace(const std::string& file, const ModelFlags& models) {
  if (file.empty()) return;
  std::vector<std::filesystem::path> read;
  add_files_of_model(models.model, read);
  add_files_of_model(models.draft_path, read);
  require_not_read(file, read);
  trace_.emplace(file);
}

std::shared_ptr<RoundObserver> ProgramTrace::observer(const std::string& model) {
  return trace_ ? trace_->observer(model) : nullptr;
}

void ProgramTrace::warn_of_failure() {
  if (!trace_ || has_warned_) return;
  const std::string failure = trace_->failure();
  if (failure.empty()) return;
  has_warned_ = true;
  fmt::print(stderr, "outrider: {}; nothing more is traced\n", one_line(failure));
}

}  // namespace outrider::cli
