// SPDX-License-Identifier: Apache-2.0
// Compares predicted passes with measured ones.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

#include "measure/plan/measured_device.h"
#include "measure/plan/shape_of_file.h"
#include "outrider/error.h"
#include "outrider/speed_plan.h"
#include "tensor/kernels_in_use.h"

namespace outrider {
namespace {

// Memory bandwidth is measured by the device's own measurement, over the model's weights.
constexpr std::int64_t kNoReading = 4096;

double predicted_seconds(const ModelShape& shape, int rows, int context, const Device& device) {
  return pass_seconds(shape, {.weights = {}, .rows = rows, .context = context, .batch = 1}, device)
      .total();
}

// The figures that a data sheet would give for a measured device.
Device data_sheet_of(const Device& device) {
  Device sheet;
  sheet.name = device.name;
  sheet.bandwidth_bytes_per_second = device.bandwidth_bytes_per_second;
  sheet.bf16_ops_per_second = device.bf16_ops_per_second;
  sheet.int8_ops_per_second = device.int8_ops_per_second;
  return sheet;
}

// Two figures of attention, from passes of `narrow` and `wide` rows with one context. The time that
// the other work leaves is kv_elements / a + ops / b: two equations for a and b.
void calibrate_attention(const ModelShape& shape, CheckedPass& narrow, CheckedPass& wide,
                         Device& device) {
  Device without = device;
  without.kv_elements_per_second = without.attention_ops_per_second = INFINITY;
  const auto work_of = [&](const CheckedPass& pass) {
    return pass_seconds(
        shape, {.weights = {}, .rows = pass.rows, .context = pass.context, .batch = 1}, without);
  };
  const PassSeconds in_narrow = work_of(narrow);
  const PassSeconds in_wide = work_of(wide);
  const double left_narrow = std::max(0.0, narrow.measured_seconds - in_narrow.total());
  const double left_wide = std::max(0.0, wide.measured_seconds - in_wide.total());
  // Keys and values are bf16.
  const double kv_narrow = in_narrow.cache_bytes / 2;
  const double kv_wide = in_wide.cache_bytes / 2;
  const double ops_narrow = in_narrow.attention_ops;
  const double ops_wide = in_wide.attention_ops;
  const double determinant = kv_narrow * ops_wide - kv_wide * ops_narrow;
  double seconds_per_kv = (left_narrow * ops_wide - left_wide * ops_narrow) / determinant;
  double seconds_per_op = (left_wide * kv_narrow - left_narrow * kv_wide) / determinant;
  // If noise makes it negative, the wide pass alone decides.
  if (seconds_per_kv < 0) {
    seconds_per_kv = 0;
    seconds_per_op = left_wide / ops_wide;
  } else if (seconds_per_op < 0) {
    seconds_per_op = 0;
    seconds_per_kv = left_wide / kv_wide;
  }
  // Infinite if a pass took no more than its other work: then attention is free as far as
  // measurable. (max turns -0 into 0, whose inverse would be negative.)
  device.attention_ops_per_second = 1 / std::max(0.0, seconds_per_op);
  device.kv_elements_per_second = 1 / std::max(0.0, seconds_per_kv);
  narrow.calibrated = wide.calibrated = true;
}

}  // namespace

int PlanCheck::n_predicted() const {
  return static_cast<int>(std::count_if(passes.begin(), passes.end(),
                                        [](const CheckedPass& pass) { return !pass.calibrated; }));
}

int PlanCheck::n_near(double share) const {
  return static_cast<int>(
      std::count_if(passes.begin(), passes.end(), [share](const CheckedPass& pass) {
        return !pass.calibrated && std::abs(pass.ratio() - 1) <= share;
      }));
}

int PlanCheck::n_near_roofline(double share) const {
  return static_cast<int>(
      std::count_if(passes.begin(), passes.end(), [share](const CheckedPass& pass) {
        return !pass.calibrated && std::abs(pass.roofline_ratio() - 1) <= share;
      }));
}

PlanCheck check_plan(const Model& model, const CheckOptions& options) {
  if (options.contexts.empty()) {
    throw UsageError("check plan", "contexts", "at least one number", "none");
  }
  PassOptions pass_options;
  pass_options.rows = options.rows;
  pass_options.rounds = options.rounds;
  pass_options.read_bytes = kNoReading;
  check_passes(pass_options);

  const int room = model.summary().context_length - options.rows.back();
  std::vector<int> contexts;
  for (const int context : options.contexts) {
    const int cut = std::max(0, std::min(context, room));
    if (contexts.empty() || cut > contexts.back()) contexts.push_back(cut);
  }

  const ModelShape shape = shape_of_model(model);
  if (options.progress) options.progress("packing weights", 0);
  MeasuredDevice machine(shape, choose_kernels(model.summary().kernels), model.summary().threads);
  for (int figure = 0; figure < MeasuredDevice::kFigures; ++figure) machine.measure_next();
  const auto n_contexts = static_cast<double>(contexts.size());
  PlanCheck check;
  for (std::size_t i = 0; i < contexts.size(); ++i) {
    pass_options.context = contexts[i];
    // Called between timed passes: there the device is measured in turn.
    pass_options.progress = [&](std::string_view step, double share) {
      if (options.progress) {
        options.progress(fmt::format("context {}, {}", contexts[i], step),
                         (static_cast<double>(i) + share) / n_contexts);
      }
      if (step.starts_with("round")) machine.measure_next();
    };
    for (const PassCost& pass : measure_passes(model, pass_options).passes) {
      CheckedPass& checked = check.passes.emplace_back();
      checked.context = contexts[i];
      checked.rows = pass.rows;
      checked.measured_seconds = pass.seconds.median;
    }
  }
  check.device = machine.device();

  const std::size_t n_widths = check.passes.size() / contexts.size();
  if (contexts.back() > 0 && n_widths > 1) {
    calibrate_attention(shape, check.passes[check.passes.size() - n_widths], check.passes.back(),
                        check.device);
  }
  const Device sheet = data_sheet_of(check.device);
  for (CheckedPass& pass : check.passes) {
    pass.predicted_seconds = predicted_seconds(shape, pass.rows, pass.context, check.device);
    pass.roofline_seconds = predicted_seconds(shape, pass.rows, pass.context, sheet);
  }
  return check;
}

}  // namespace outrider
