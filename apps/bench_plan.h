// outrider bench --plan: what drafts would gain on devices that are not at hand, and how far that
// is true here.
#ifndef OUTRIDER_APPS_BENCH_PLAN_H_
#define OUTRIDER_APPS_BENCH_PLAN_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "model_flags.h"
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

// --plan, and what it alone takes.
void add_plan_flags(CLI::App& app, PlanFlags& flags);

// What other measurements take, too.
struct PlanRun {
  std::string weights;             // empty: as stored
  std::vector<std::string> trees;  // empty: auto
  int context = 0;
  bool says_context = false;
  bool json = false;
};
int run_plan(const PlanFlags& flags, const PlanRun& run);

// Of --check; the rows and rounds are those of --passes.
struct PlanCheckRun {
  std::vector<int> rows;      // empty: the check's own
  std::vector<int> contexts;  // likewise
  int rounds = 5;
  bool json = false;
};
int run_plan_check(const ModelFlags& model_flags, const PlanCheckRun& run);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_BENCH_PLAN_H_
