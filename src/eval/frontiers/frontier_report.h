// SPDX-License-Identifier: Apache-2.0
// A measured frontier as a table, CSV, JSON and pictures.
#ifndef OUTRIDER_EVAL_FRONTIERS_FRONTIER_REPORT_H_
#define OUTRIDER_EVAL_FRONTIERS_FRONTIER_REPORT_H_

#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "eval/frontiers/frontier.h"

namespace outrider::eval {

// The task and metric of the points.
struct FrontierRun {
  std::string task;
  std::string metric;  // of the headline score
  std::string score;   // its name
  bool larger_is_better = true;
  std::string target;
  std::string drafter;
};

// The paper's table for latency and for passes, as lines for terminals.
std::string frontier_text(std::span<const FrontierPoint> points, const FrontierRun& run);
std::string frontier_csv(std::span<const FrontierPoint> points);
nlohmann::ordered_json frontier_json(std::span<const FrontierPoint> points, const FrontierRun& run);

// Writes frontier.csv, frontier.json, and for each transform and slice pictures of quality against
// latency, passes, rejection, deferral and compute, replacing those of an earlier report. Returns
// lines that say which pictures could not be drawn, and why. Throws Error if a file cannot be
// written.
std::vector<std::string> write_frontier_report(std::span<const FrontierPoint> points,
                                               const FrontierRun& run,
                                               const std::filesystem::path& directory,
                                               const std::string& picture);

}  // namespace outrider::eval

#endif  // OUTRIDER_EVAL_FRONTIERS_FRONTIER_REPORT_H_
