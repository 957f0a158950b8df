// SPDX-License-Identifier: Apache-2.0
// Results of teacher forcing, as rows with intervals, a table, CSV, JSON and pictures.
#ifndef OUTRIDER_EVAL_ALONG_TEXTS_FORCED_REPORT_H_
#define OUTRIDER_EVAL_ALONG_TEXTS_FORCED_REPORT_H_

#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "eval/along_texts/teacher_forced.h"
#include "eval/frontiers/frontier_plot.h"
#include "eval/frontiers/rule_grid.h"

namespace outrider::eval {

// Means over tokens, with 95% intervals over texts (sampling/bootstrap.h; the same resamples for
// every setting). Infinite figures have no interval.
struct ForcedRow {
  RuleSetting rule;
  SamplingParams sampling;
  Figure nll;
  Figure hits;
  Figure rejection;
  Figure deferral;
  Figure kl;
  Figure tv;
  std::vector<Figure> tau;  // tokens per pass of the target, for each length of drafts
};

// In the order of the settings. At least one text must have a token.
std::vector<ForcedRow> forced_rows(const TeacherForced& measured);

// The models and texts of the measurement, for the JSON.
struct ForcedRun {
  std::string target = {};
  std::string drafter = {};
  std::vector<std::string> files = {};
  std::int64_t n_texts = 0;
  std::int64_t n_tokens = 0;
  int window = 0;
  std::vector<int> lengths = {};
};

std::string forced_table(std::span<const ForcedRow> rows, std::span<const int> lengths);
std::string forced_csv(std::span<const ForcedRow> rows, std::span<const int> lengths);
nlohmann::ordered_json forced_json(std::span<const ForcedRow> rows, const ForcedRun& run);

// Creates the folder before the measurement, so that an unwritable place is noticed early. Throws
// Error.
void make_report_folder(const std::filesystem::path& directory);

// Writes teacher-forced.csv and teacher-forced.json. For each transform draws a picture of quality
// against the rejection rate, and one against the longest length's tau. Quality is the negative
// log-likelihood or, if that is infinite for some rule (temperature 0, truncation), the hits.
// Removes the pictures of an earlier report. Returns lines that say which pictures could not be
// drawn, and why. `picture` is their extension, "svg" or "png". Throws Error if a file cannot be
// written.
std::vector<std::string> write_forced_report(std::span<const ForcedRow> rows, const ForcedRun& run,
                                             const std::filesystem::path& directory,
                                             const std::string& picture);

}  // namespace outrider::eval

#endif  // OUTRIDER_EVAL_ALONG_TEXTS_FORCED_REPORT_H_
