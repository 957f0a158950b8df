// SPDX-License-Identifier: Apache-2.0
// outrider bench --passes: measures the cost of passes of different widths.
#ifndef OUTRIDER_APPS_BENCH_BENCH_PASSES_H_
#define OUTRIDER_APPS_BENCH_BENCH_PASSES_H_

#include <CLI/CLI.hpp>
#include <string>

#include "apps/flags/model_flags.h"
#include "outrider/measure.h"

namespace outrider::cli {

struct PassesFlags {
  bool chosen = false;
  std::string nodes = "chain";
  PassOptions options;
};

// --passes, and the flags that need it.
void add_passes_flags(CLI::App& app, PassesFlags& flags);

// The caller sets context and rounds of the options before.
int run_passes(const ModelFlags& model_flags, const PassesFlags& flags, bool json);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_BENCH_BENCH_PASSES_H_
