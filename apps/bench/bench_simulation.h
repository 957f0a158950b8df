// SPDX-License-Identifier: Apache-2.0
// outrider bench --simulate-acceptance: measures what decoding gains from a drafter of a given
// cost.
#ifndef OUTRIDER_APPS_BENCH_BENCH_SIMULATION_H_
#define OUTRIDER_APPS_BENCH_BENCH_SIMULATION_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "apps/flags/model_flags.h"
#include "outrider/measure.h"

namespace outrider::cli {

struct SimulationFlags {
  CLI::Option* chosen = nullptr;
  std::vector<std::string> trees;
  std::vector<int> lengths;
  SimulationOptions options;
};

// --simulate-acceptance, and the flags that need it, without the drafter's.
void add_simulation_flags(CLI::App& app, SimulationFlags& flags);

// The caller sets context and rounds of the options before.
int run_simulation(const ModelFlags& model_flags, const SimulationFlags& flags, bool json);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_BENCH_BENCH_SIMULATION_H_
