// SPDX-License-Identifier: Apache-2.0
#include "eval/frontiers/frontier.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <utility>

#include "eval/report_text.h"
#include "outrider/error.h"
#include "sampling/bootstrap.h"

namespace outrider::eval {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

const std::vector<double>& counts_of(const Record& record, const Metric& metric) {
  const auto counts = record.counts.find(std::string(metric.name()));
  if (counts == record.counts.end() || counts->second.size() != metric.n_counts()) {
    throw Error("measure frontier", record.place, "counts of the metric", "a record without them");
  }
  return counts->second;
}

// A figure computed from sums over items; row(item) gives the terms.
Figure of_sums(std::span<const FrontierItem* const> items,
               const std::function<std::vector<double>(const FrontierItem&)>& row,
               const std::function<double(std::span<const double>)>& figure) {
  std::vector<double> rows;
  std::size_t width = 0;
  for (const FrontierItem* item : items) {
    const std::vector<double> terms = row(*item);
    width = terms.size();
    rows.insert(rows.end(), terms.begin(), terms.end());
  }
  std::vector<double> sums(width, 0.0);
  for (std::size_t i = 0; i < rows.size(); ++i) sums[i % width] += rows[i];
  const auto figures = [&](std::span<const double> of) { return std::vector{figure(of)}; };
  const Interval interval = bootstrap_intervals(rows, width, figures).front();
  return {figure(sums), interval.low, interval.high};
}

Figure share(std::span<const FrontierItem* const> items, double (*part)(const Effort&),
             double (*whole)(const Effort&)) {
  return of_sums(
      items,
      [&](const FrontierItem& item) {
        return std::vector{part(item.answer.effort), whole(item.answer.effort)};
      },
      [](std::span<const double> sums) { return sums[1] > 0 ? sums[0] / sums[1] : kNaN; });
}

double emitted(const Effort& effort) { return static_cast<double>(effort.emitted); }

Figure latency(std::span<const FrontierItem* const> items) {
  std::vector<double> ratios;
  for (const FrontierItem* item : items) {
    const Effort& answer = item->answer.effort;
    const Effort& plain = item->plain.effort;
    if (!item->timed || answer.emitted == 0 || plain.emitted == 0) continue;
    if (!(plain.decode_seconds > 0)) continue;
    ratios.push_back((answer.decode_seconds / emitted(answer)) /
                     (plain.decode_seconds / emitted(plain)));
  }
  if (ratios.empty()) return {kNaN, kNaN, kNaN};
  const Interval interval = bootstrap_median(ratios);
  return {median(ratios), interval.low, interval.high};
}

FrontierPoint point_of(const FrontierSetting& setting, std::string slice,
                       std::span<const FrontierItem* const> items, const Metric& metric,
                       const PairSize& size) {
  FrontierPoint point;
  point.setting = setting;
  point.slice = std::move(slice);
  point.n_items = static_cast<int>(items.size());
  point.n_timed = static_cast<int>(std::count_if(
      items.begin(), items.end(), [](const FrontierItem* item) { return item->timed; }));
  const auto score = [&](std::span<const double> sums) { return metric.scores(sums).front(); };
  point.quality = of_sums(
      items, [&](const FrontierItem& item) { return counts_of(item.answer, metric); }, score);
  point.plain_quality = of_sums(
      items, [&](const FrontierItem& item) { return counts_of(item.plain, metric); }, score);
  point.latency = latency(items);
  point.passes = share(
      items, [](const Effort& e) { return static_cast<double>(e.target_passes); }, emitted);
  point.rejection = share(
      items, [](const Effort& e) { return static_cast<double>(e.rejected); },
      [](const Effort& e) { return static_cast<double>(e.accepted + e.rejected); });
  point.deferral = share(
      items, [](const Effort& e) { return e.deferral; }, emitted);
  if (setting.sequential) {
    point.compute = {kNaN, kNaN, kNaN};
  } else {
    const double drafter_share =
        static_cast<double>(size.drafter_parameters) / static_cast<double>(size.target_parameters);
    point.compute = of_sums(
        items,
        [&](const FrontierItem& item) {
          const Effort& effort = item.answer.effort;
          return std::vector{static_cast<double>(effort.target_passes + effort.drafted) +
                                 drafter_share * static_cast<double>(effort.drafter_passes),
                             emitted(effort)};
        },
        [](std::span<const double> sums) { return sums[1] > 0 ? sums[0] / sums[1] : kNaN; });
  }
  return point;
}

}  // namespace

std::vector<FrontierPoint> measure_points(const FrontierSetting& setting,
                                          std::span<const FrontierItem> items, const Metric& metric,
                                          const PairSize& size) {
  std::vector<const FrontierItem*> all;
  std::map<std::string, std::vector<const FrontierItem*>> slices;
  for (const FrontierItem& item : items) {
    all.push_back(&item);
    if (!item.answer.slice.empty()) slices[item.answer.slice].push_back(&item);
  }
  std::vector<FrontierPoint> points = {point_of(setting, "", all, metric, size)};
  for (const auto& [name, of_slice] : slices) {
    points.push_back(point_of(setting, name, of_slice, metric, size));
  }
  return points;
}

const Figure& cost_of(const FrontierPoint& point, Cost cost) {
  return cost == Cost::latency ? point.latency : point.passes;
}

std::vector<FrontierRow> frontier_rows(std::span<const FrontierPoint> points, Cost cost,
                                       bool larger_is_better) {
  // NaN is neither as good nor as fast as any value.
  const auto at_least = [&](double a, double b) { return larger_is_better ? a >= b : a <= b; };
  const auto better = [&](double a, double b) { return larger_is_better ? a > b : a < b; };
  std::vector<FrontierRow> rows;
  for (const FrontierPoint& point : points) {
    auto row = std::find_if(rows.begin(), rows.end(), [&](const FrontierRow& other) {
      return other.family == point.setting.rule.family && other.slice == point.slice &&
             same(other.sampling, point.setting.sampling);
    });
    if (row == rows.end()) {
      rows.push_back({.family = point.setting.rule.family,
                      .sampling = point.setting.sampling,
                      .slice = point.slice,
                      .plain_quality = point.plain_quality.value,
                      .fastest_as_good = std::nullopt,
                      .best_as_fast = std::nullopt});
      row = std::prev(rows.end());
    }
    const double price = cost_of(point, cost).value;
    const double quality = point.quality.value;
    if (at_least(quality, point.plain_quality.value) && !std::isnan(price) &&
        (!row->fastest_as_good || price < cost_of(*row->fastest_as_good, cost).value)) {
      row->fastest_as_good = point;
    }
    if (price <= 1 && !std::isnan(quality) &&
        (!row->best_as_fast || better(quality, row->best_as_fast->quality.value))) {
      row->best_as_fast = point;
    }
  }
  return rows;
}

}  // namespace outrider::eval
