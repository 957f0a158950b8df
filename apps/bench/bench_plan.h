// SPDX-License-Identifier: Apache-2.0
// outrider bench --plan: predicts what drafts gain on devices that are not present, and checks the
// prediction on this one.
#ifndef OUTRIDER_APPS_BENCH_BENCH_PLAN_H_
#define OUTRIDER_APPS_BENCH_BENCH_PLAN_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "apps/flags/model_flags.h"
#include "outrider/speed_plan.h"

namespace outrider::cli {

struct PlanFlags {
  bool chosen = false;
  bool checks = false;
  std::string shapes;                // "target" or "target,drafter"
  std::vector<std::string> devices;  // empty: all
  std::vector<double> acceptance = {0.7};
  int batch = 1;
};

// --plan, and the flags that need it.
void add_plan_flags(CLI::App& app, PlanFlags& flags);

// Values of flags that other measurements also have.
struct PlanRun {
  std::string weights;             // empty: as stored
  std::vector<std::string> trees;  // empty: auto
  int context = 0;
  bool says_context = false;
  bool json = false;
};
int run_plan(const PlanFlags& flags, const PlanRun& run);

// For --check; rows and rounds are the flags of --passes.
struct PlanCheckRun {
  std::vector<int> rows;      // empty: the check's default
  std::vector<int> contexts;  // empty: the check's default
  int rounds = 5;
  bool json = false;
};
int run_plan_check(const ModelFlags& model_flags, const PlanCheckRun& run);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_BENCH_BENCH_PLAN_H_
