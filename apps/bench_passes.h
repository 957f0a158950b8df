// outrider bench --passes: what passes of different widths cost.
#ifndef OUTRIDER_APPS_BENCH_PASSES_H_
#define OUTRIDER_APPS_BENCH_PASSES_H_

#include <CLI/CLI.hpp>
#include <string>

#include "model_flags.h"
#include "outrider/measure.h"

namespace outrider::cli {

struct PassesFlags {
  bool chosen = false;
  std::string nodes = "chain";
  PassOptions options;
};

// --passes, and what it alone takes.
void add_passes_flags(CLI::App& app, PassesFlags& flags);

// context and rounds of the options are set by then.
int run_passes(const ModelFlags& model_flags, const PassesFlags& flags, bool json);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_BENCH_PASSES_H_
