// SPDX-License-Identifier: Apache-2.0
#include "eval/frontiers/frontier_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <set>
#include <system_error>
#include <utility>

#include "base/files/atomic_file.h"
#include "eval/frontiers/report_pictures.h"
#include "eval/report_text.h"
#include "eval/tasks/json_text.h"
#include "outrider/error.h"

namespace outrider::eval {
namespace {

struct Axis {
  const char* name;
  const char* label;
  Figure FrontierPoint::*figure;
};

constexpr std::array<Axis, 5> kCosts = {{
    {"latency", "latency a token, plain decoding 1", &FrontierPoint::latency},
    {"passes", "passes of the target a token", &FrontierPoint::passes},
    {"rejection", "rejected share of judged drafted tokens", &FrontierPoint::rejection},
    {"deferral", "deferral rate", &FrontierPoint::deferral},
    {"compute", "compute a token, plain decoding 1", &FrontierPoint::compute},
}};

std::string curve_name(const FrontierSetting& setting) {
  if (setting.sequential) return setting.rule.family;
  return fmt::format("{}, {}", setting.rule.family, setting.length);
}

std::string describe(const FrontierPoint& point) {
  return point.setting.sequential
             ? point.setting.rule.rule
             : fmt::format("{}, drafts of {}", point.setting.rule.rule, point.setting.length);
}

std::string line_of(const FrontierRow& row, Cost cost) {
  const bool by_latency = cost == Cost::latency;
  std::string text = fmt::format("  {}\n    as good as the target: ", row.family);
  if (row.fastest_as_good) {
    const FrontierPoint& point = *row.fastest_as_good;
    const Figure& price = cost_of(point, cost);
    text += fmt::format("{} {:.2f} [{:.2f}, {:.2f}] ({}: {:.3f})\n",
                        by_latency ? "speed x" : "passes /", 1 / price.value, 1 / price.high,
                        1 / price.low, describe(point), point.quality.value);
  } else {
    text += "nowhere\n";
  }
  text += fmt::format("    {} the target: ", by_latency ? "as fast as" : "no more passes than");
  if (row.best_as_fast) {
    const FrontierPoint& point = *row.best_as_fast;
    text += fmt::format("{:.3f} [{:.3f}, {:.3f}] ({}: {} {:.2f})\n", point.quality.value,
                        point.quality.low, point.quality.high, describe(point),
                        by_latency ? "speed x" : "passes /", 1 / cost_of(point, cost).value);
  } else {
    text += "nowhere\n";
  }
  return text;
}

std::string table(std::span<const FrontierPoint> points, const FrontierRun& run, Cost cost) {
  // The parts of one heading: a transform and a slice.
  std::vector<std::pair<std::string, std::string>> parts;
  for (const FrontierRow& row : frontier_rows(points, cost, run.larger_is_better)) {
    const std::string slice = row.slice.empty() ? "" : ", " + row.slice;
    const std::string heading =
        fmt::format("{}{}: {} of the target alone {:.3f}\n", name_of(row.sampling), slice,
                    run.score, row.plain_quality);
    auto part = std::find_if(parts.begin(), parts.end(),
                             [&](const auto& other) { return other.first == heading; });
    if (part == parts.end()) part = parts.insert(parts.end(), {heading, ""});
    part->second += line_of(row, cost);
  }
  std::string text;
  for (const auto& [heading, lines] : parts) text += heading + lines;
  return text;
}

nlohmann::ordered_json to_json(const Figure& figure) {
  return {figure.value, figure.low, figure.high};
}

nlohmann::ordered_json to_json(const FrontierPoint& point) {
  const FrontierSetting& setting = point.setting;
  nlohmann::ordered_json json = {{"rule", setting.rule.rule},
                                 {"family", setting.rule.family},
                                 {"sequential", setting.sequential},
                                 {"length", setting.length},
                                 {"temperature", setting.sampling.temperature},
                                 {"top_k", setting.sampling.top_k},
                                 {"top_p", setting.sampling.top_p},
                                 {"slice", point.slice},
                                 {"items", point.n_items},
                                 {"timed_items", point.n_timed}};
  if (setting.rule.value) json[setting.rule.parameter] = *setting.rule.value;
  json["quality"] = to_json(point.quality);
  json["plain_quality"] = to_json(point.plain_quality);
  for (const Axis& axis : kCosts) json[axis.name] = to_json(point.*axis.figure);
  return json;
}

}  // namespace

std::string frontier_text(std::span<const FrontierPoint> points, const FrontierRun& run) {
  return fmt::format("By latency\n{}\nBy passes of the target\n{}",
                     table(points, run, Cost::latency), table(points, run, Cost::passes));
}

std::string frontier_csv(std::span<const FrontierPoint> points) {
  std::string csv =
      "temperature,top_k,top_p,rule,family,parameter,value,sequential,length,slice,items,"
      "timed_items,quality,"
      "quality_low,quality_high,plain_quality,plain_quality_low,plain_quality_high";
  for (const Axis& axis : kCosts) csv += fmt::format(",{0},{0}_low,{0}_high", axis.name);
  csv += '\n';
  const auto figure = [](const Figure& f) {
    return fmt::format(",{:.8g},{:.8g},{:.8g}", f.value, f.low, f.high);
  };
  for (const FrontierPoint& point : points) {
    const FrontierSetting& setting = point.setting;
    csv += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{}", setting.sampling.temperature,
                       setting.sampling.top_k, setting.sampling.top_p, csv_field(setting.rule.rule),
                       csv_field(setting.rule.family), setting.rule.parameter,
                       setting.rule.value ? fmt::format("{}", *setting.rule.value) : "",
                       setting.sequential ? 1 : 0, setting.length, csv_field(point.slice),
                       point.n_items, point.n_timed);
    csv += figure(point.quality) + figure(point.plain_quality);
    for (const Axis& axis : kCosts) csv += figure(point.*axis.figure);
    csv += '\n';
  }
  return csv;
}

nlohmann::ordered_json frontier_json(std::span<const FrontierPoint> points,
                                     const FrontierRun& run) {
  nlohmann::ordered_json settings = nlohmann::ordered_json::array();
  for (const FrontierPoint& point : points) settings.push_back(to_json(point));
  nlohmann::ordered_json tables;
  for (const Cost cost : {Cost::latency, Cost::passes}) {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const FrontierRow& row : frontier_rows(points, cost, run.larger_is_better)) {
      nlohmann::ordered_json json = {
          {"family", row.family},        {"temperature", row.sampling.temperature},
          {"top_k", row.sampling.top_k}, {"top_p", row.sampling.top_p},
          {"slice", row.slice},          {"plain_quality", row.plain_quality},
          {"fastest_as_good", nullptr},  {"best_as_fast", nullptr}};
      if (row.fastest_as_good) json["fastest_as_good"] = to_json(*row.fastest_as_good);
      if (row.best_as_fast) json["best_as_fast"] = to_json(*row.best_as_fast);
      rows.push_back(std::move(json));
    }
    tables[cost == Cost::latency ? "latency" : "passes"] = std::move(rows);
  }
  return {{"format", "outrider-frontier"},
          {"version", 1},
          {"task", run.task},
          {"metric", run.metric},
          {"score", run.score},
          {"larger_is_better", run.larger_is_better},
          {"target", run.target},
          {"drafter", run.drafter},
          {"intervals", "95%, percentile bootstrap over items: [value, low, high]"},
          {"points", std::move(settings)},
          {"tables", std::move(tables)}};
}

std::vector<std::string> write_frontier_report(std::span<const FrontierPoint> points,
                                               const FrontierRun& run,
                                               const std::filesystem::path& directory,
                                               const std::string& picture) {
  write_file_atomically(directory / "frontier.csv", frontier_csv(points));
  write_file_atomically(directory / "frontier.json",
                        json_text(frontier_json(points, run), 1) + "\n");

  // One figure per transform, slice and axis.
  std::vector<std::string> beginnings;
  beginnings.reserve(kCosts.size());
  for (const Axis& axis : kCosts) beginnings.push_back(fmt::format("frontier-{}-", axis.name));
  ReportPictures pictures(directory, beginnings, picture);
  std::set<std::string> drawn;
  for (const FrontierPoint& first : points) {
    std::string title = name_of(first.setting.sampling);
    if (!first.slice.empty()) title += ", " + first.slice;
    if (!drawn.insert(title).second) continue;
    for (const Axis& axis : kCosts) {
      FrontierPlot plot{.title = title, .x_label = axis.label, .y_label = run.score, .curves = {}};
      Figure FrontierPoint::*const x = axis.figure;
      for (const FrontierPoint& point : points) {
        if (point.slice != first.slice || !same(point.setting.sampling, first.setting.sampling)) {
          continue;
        }
        const std::string name = curve_name(point.setting);
        auto curve = std::find_if(plot.curves.begin(), plot.curves.end(),
                                  [&](const Curve& other) { return other.name == name; });
        if (curve == plot.curves.end()) {
          plot.curves.push_back({.name = name, .points = {}});
          curve = std::prev(plot.curves.end());
        }
        curve->points.push_back({.x = point.*x, .y = point.quality});
      }
      pictures.draw(plot, fmt::format("frontier-{}-{}", axis.name, file_part(title)));
    }
  }
  return pictures.problems();
}

}  // namespace outrider::eval
