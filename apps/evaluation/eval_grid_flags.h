// SPDX-License-Identifier: Apache-2.0
// Flags for the settings of a frontier (rules, transforms, draft lengths) and for the place of its
// report.
#ifndef OUTRIDER_APPS_EVALUATION_EVAL_GRID_FLAGS_H_
#define OUTRIDER_APPS_EVALUATION_EVAL_GRID_FLAGS_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "eval/frontiers/rule_grid.h"
#include "outrider/sampling.h"

namespace outrider::cli {

struct GridFlags {
  std::string rules = "exact,chow,diff,opt,token-v1,token-v2,token-v3,lossy";
  std::vector<double> alphas;
  std::vector<double> temperatures = {1};
  std::vector<double> top_ps = {1};
  std::vector<int> top_ks = {0};
  std::vector<int> lengths = {5};
};

struct ReportWhere {
  std::string directory;  // may be empty: no report
  std::string picture = "svg";
  bool json = false;  // to standard output, instead of a table
};

void add_grid_flags(CLI::App& app, GridFlags& flags, const char* group);

// Throws the exceptions of eval::expand_rules.
std::vector<eval::RuleSetting> rules_of(const GridFlags& flags);

// Without duplicates.
std::vector<int> lengths_of(const GridFlags& flags);

// Every temperature with every truncation, without duplicates. Temperature 0 has no truncations,
// because they do not change its result.
std::vector<SamplingParams> samplings_of(const GridFlags& flags);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_EVALUATION_EVAL_GRID_FLAGS_H_
