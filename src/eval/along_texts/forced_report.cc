// SPDX-License-Identifier: Apache-2.0
#include "eval/along_texts/forced_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <system_error>
#include <utility>

#include "base/files/atomic_file.h"
#include "eval/frontiers/report_pictures.h"
#include "eval/report_text.h"
#include "eval/tasks/json_text.h"
#include "outrider/error.h"
#include "sampling/bootstrap.h"

namespace outrider::eval {
namespace {

// A row's columns, in the order in the files.
struct Column {
  std::string name;
  const Figure* figure;
};

std::vector<Column> columns_of(const ForcedRow& row, std::span<const int> lengths) {
  std::vector<Column> columns = {
      {"nll", &row.nll},           {"hits", &row.hits},  {"rejection", &row.rejection},
      {"deferral", &row.deferral}, {"rule_kl", &row.kl}, {"rule_tv", &row.tv}};
  for (std::size_t index = 0; index < lengths.size(); ++index) {
    columns.push_back({fmt::format("tau_{}", lengths[index]), &row.tau[index]});
  }
  return columns;
}

std::vector<SamplingParams> transforms_of(std::span<const ForcedRow> rows) {
  std::vector<SamplingParams> transforms;
  for (const ForcedRow& row : rows) {
    const bool known =
        std::any_of(transforms.begin(), transforms.end(),
                    [&](const SamplingParams& other) { return same(row.sampling, other); });
    if (!known) transforms.push_back(row.sampling);
  }
  return transforms;
}

std::vector<Curve> curves_of(std::span<const ForcedRow> rows, const SamplingParams& transform,
                             const Figure& (*x)(const ForcedRow&),
                             const Figure& (*y)(const ForcedRow&)) {
  std::vector<Curve> curves;
  for (const ForcedRow& row : rows) {
    if (!same(row.sampling, transform)) continue;
    auto curve = std::find_if(curves.begin(), curves.end(),
                              [&](const Curve& other) { return other.name == row.rule.family; });
    if (curve == curves.end()) {
      curves.push_back({.name = row.rule.family, .points = {}});
      curve = std::prev(curves.end());
    }
    curve->points.push_back({.x = x(row), .y = y(row)});
  }
  return curves;
}

const Figure& nll_of(const ForcedRow& row) { return row.nll; }
const Figure& hits_of(const ForcedRow& row) { return row.hits; }
const Figure& rejection_of(const ForcedRow& row) { return row.rejection; }
const Figure& last_tau_of(const ForcedRow& row) { return row.tau.back(); }

}  // namespace

std::vector<ForcedRow> forced_rows(const TeacherForced& measured) {
  std::vector<ForcedRow> rows;
  for (const ForcedSetting& setting : measured.settings()) {
    const std::size_t n_lengths = measured.lengths().size();
    // Counts per text: tokens, six sums over them, and the passes.
    const std::size_t n_counts = 7 + n_lengths;
    std::vector<double> counts;
    for (const ForcedSums& text : setting.texts) {
      counts.insert(counts.end(), {static_cast<double>(text.n_tokens), text.nll, text.hits,
                                   text.rejection, text.deferral, text.kl, text.tv});
      counts.insert(counts.end(), text.passes.begin(), text.passes.end());
    }
    const auto scores = [n_counts](std::span<const double> sums) {
      std::vector<double> means;
      for (std::size_t c = 1; c < 7; ++c) means.push_back(sums[c] / sums[0]);
      for (std::size_t c = 7; c < n_counts; ++c) means.push_back(sums[0] / sums[c]);
      return means;
    };
    std::vector<double> all(n_counts, 0.0);
    for (std::size_t i = 0; i < counts.size(); ++i) all[i % n_counts] += counts[i];
    const std::vector<double> values = scores(all);
    const std::vector<Interval> intervals = bootstrap_intervals(counts, n_counts, scores);
    const auto figure = [&](std::size_t index) {
      return Figure{values[index], intervals[index].low, intervals[index].high};
    };
    ForcedRow row{.rule = setting.rule,
                  .sampling = setting.sampling,
                  .nll = figure(0),
                  .hits = figure(1),
                  .rejection = figure(2),
                  .deferral = figure(3),
                  .kl = figure(4),
                  .tv = figure(5),
                  .tau = {}};
    for (std::size_t index = 0; index < n_lengths; ++index) row.tau.push_back(figure(6 + index));
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string forced_table(std::span<const ForcedRow> rows, std::span<const int> lengths) {
  std::size_t width = 4;
  for (const ForcedRow& row : rows) width = std::max(width, row.rule.rule.size());
  std::string table;
  for (const SamplingParams& transform : transforms_of(rows)) {
    if (!table.empty()) table += '\n';
    table += fmt::format("{}\n  {:<{}}", name_of(transform), "rule", width);
    table += fmt::format("{:>9}{:>19}{:>9}{:>11}{:>10}{:>9}{:>9}", "nll", "95%", "hits",
                         "rejection", "deferral", "kl", "tv");
    for (const int length : lengths) table += fmt::format("{:>8}", fmt::format("tau_{}", length));
    table += '\n';
    for (const ForcedRow& row : rows) {
      if (!same(row.sampling, transform)) continue;
      const std::string interval = std::isfinite(row.nll.low) && std::isfinite(row.nll.high)
                                       ? fmt::format("{:.4f}-{:.4f}", row.nll.low, row.nll.high)
                                       : std::string();
      table += fmt::format("  {:<{}}{:>9.4f}{:>19}{:>9.4f}{:>11.4f}{:>10.3f}{:>9.4f}{:>9.4f}",
                           row.rule.rule, width, row.nll.value, interval, row.hits.value,
                           row.rejection.value, row.deferral.value, row.kl.value, row.tv.value);
      for (const Figure& tau : row.tau) table += fmt::format("{:>8.3f}", tau.value);
      table += '\n';
    }
  }
  return table;
}

std::string forced_csv(std::span<const ForcedRow> rows, std::span<const int> lengths) {
  std::string csv = "temperature,top_k,top_p,rule,family,parameter,value";
  if (!rows.empty()) {
    for (const Column& column : columns_of(rows.front(), lengths)) {
      csv += fmt::format(",{0},{0}_low,{0}_high", column.name);
    }
  }
  csv += '\n';
  for (const ForcedRow& row : rows) {
    csv += fmt::format("{},{},{},{},{},{},{}", row.sampling.temperature, row.sampling.top_k,
                       row.sampling.top_p, csv_field(row.rule.rule), csv_field(row.rule.family),
                       row.rule.parameter,
                       row.rule.value ? fmt::format("{}", *row.rule.value) : std::string());
    for (const Column& column : columns_of(row, lengths)) {
      csv += fmt::format(",{:.8g},{:.8g},{:.8g}", column.figure->value, column.figure->low,
                         column.figure->high);
    }
    csv += '\n';
  }
  return csv;
}

nlohmann::ordered_json forced_json(std::span<const ForcedRow> rows, const ForcedRun& run) {
  nlohmann::ordered_json settings = nlohmann::ordered_json::array();
  for (const ForcedRow& row : rows) {
    nlohmann::ordered_json setting = {{"temperature", row.sampling.temperature},
                                      {"top_k", row.sampling.top_k},
                                      {"top_p", row.sampling.top_p},
                                      {"rule", row.rule.rule},
                                      {"family", row.rule.family}};
    if (row.rule.value) setting[row.rule.parameter] = *row.rule.value;
    // Infinities and unknown values become null: JSON has neither.
    for (const Column& column : columns_of(row, run.lengths)) {
      setting[column.name] = {column.figure->value, column.figure->low, column.figure->high};
    }
    settings.push_back(std::move(setting));
  }
  return {{"format", "outrider-teacher-forced"},
          {"version", 1},
          {"target", run.target},
          {"drafter", run.drafter},
          {"files", run.files},
          {"texts", run.n_texts},
          {"tokens", run.n_tokens},
          {"window", run.window},
          {"lengths", run.lengths},
          {"intervals", "95%, percentile bootstrap over texts: [value, low, high]"},
          {"settings", std::move(settings)}};
}

void make_report_folder(const std::filesystem::path& directory) {
  std::error_code failed;
  std::filesystem::create_directories(directory, failed);
  if (failed) throw Error("write report", directory.string(), failed.message());
}

std::vector<std::string> write_forced_report(std::span<const ForcedRow> rows, const ForcedRun& run,
                                             const std::filesystem::path& directory,
                                             const std::string& picture) {
  make_report_folder(directory);
  write_file_atomically(directory / "teacher-forced.csv", forced_csv(rows, run.lengths));
  write_file_atomically(directory / "teacher-forced.json",
                        json_text(forced_json(rows, run), 1) + "\n");

  ReportPictures pictures(directory, {"teacher-forced-rejection-", "teacher-forced-tau-"}, picture);
  for (const SamplingParams& transform : transforms_of(rows)) {
    const bool finite = std::all_of(rows.begin(), rows.end(), [&](const ForcedRow& row) {
      return !same(row.sampling, transform) || std::isfinite(row.nll.value);
    });
    const auto y = finite ? nll_of : hits_of;
    const std::string y_label = finite ? "negative log-likelihood of the text (nats a token)"
                                       : "expected share of the text's tokens emitted";
    const std::string name = name_of(transform);
    const auto plot = [&](const char* axis, std::string x_label,
                          const Figure& (*x)(const ForcedRow&)) {
      pictures.draw({.title = name,
                     .x_label = std::move(x_label),
                     .y_label = y_label,
                     .curves = curves_of(rows, transform, x, y),
                     .bars = false},
                    fmt::format("teacher-forced-{}-{}", axis, file_part(name)));
    };
    plot("rejection", "expected rejection of a drafted token", rejection_of);
    if (!run.lengths.empty()) {
      plot("tau",
           fmt::format("expected tokens a pass of the target, drafts of {}", run.lengths.back()),
           last_tau_of);
    }
  }
  return pictures.problems();
}

}  // namespace outrider::eval
