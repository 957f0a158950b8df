// SPDX-License-Identifier: Apache-2.0
// outrider bench --plan --check: compares the formula with measured passes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "apps/bench/bench_plan.h"
#include "apps/bench/bench_progress.h"
#include "apps/bench/bench_text.h"
#include "apps/cli/interrupt.h"
#include "apps/cli/terminal.h"

namespace outrider::cli {
namespace {

// The accepted deviation of a prediction from the measurement.
constexpr double kNearShare = 0.15;

std::string to_table(const PlanCheck& check, const Model& model) {
  const Device& device = check.device;
  std::string text = describe_line(model, check.passes.back().context);
  text += fmt::format(
      "{}, {}: reads {:.3g} GB/s, {:.3g} Tops/s of products, {:.3g} billion elements of rows,\n",
      device.name, device.source, device.bandwidth_bytes_per_second * 1e-9,
      std::max(device.int8_ops_per_second, device.bf16_ops_per_second) * 1e-12,
      device.row_elements_per_second * 1e-9);
  text += device.attention_ops_per_second > 0
              ? fmt::format("{:.3g} billion keys and values and {:.3g} Gops/s of attention\n\n",
                            device.kv_elements_per_second * 1e-9,
                            device.attention_ops_per_second * 1e-9)
              : std::string("attention not measured: that takes a context and two widths\n\n");
  text += fmt::format("{:>7}  {:>4}  {:>9}  {:>9}  {:>5}  {:>8}\n", "context", "rows", "measured",
                      "predicted", "ratio", "roofline");
  for (const CheckedPass& pass : check.passes) {
    const bool is_near = std::abs(pass.ratio() - 1) <= kNearShare;
    text += fmt::format("{:>7}  {:>4}  {:>9}  {:>9}  {:>5.2f}  {:>8.2f}{}\n", pass.context,
                        pass.rows, show_duration(pass.measured_seconds),
                        show_duration(pass.predicted_seconds), pass.ratio(), pass.roofline_ratio(),
                        pass.calibrated ? "  attention was taken from it"
                        : is_near       ? ""
                                        : "  *");
  }
  return text + fmt::format(
                    "\n{} of {} predictions within {:.0f}%; {} by the roofline alone, the read's "
                    "speed and\nthe peak of products of many rows\n",
                    check.n_near(kNearShare), check.n_predicted(), kNearShare * 100,
                    check.n_near_roofline(kNearShare));
}

std::string to_json(const PlanCheck& check, const Model& model) {
  Json object = describe(model);
  object["bandwidth_bytes_per_second"] = check.device.bandwidth_bytes_per_second;
  object["row_elements_per_second"] = check.device.row_elements_per_second;
  object["kv_elements_per_second"] = check.device.kv_elements_per_second;
  object["attention_ops_per_second"] = check.device.attention_ops_per_second;
  object["products"] = Json::array();
  for (const ProductRate& rate : check.device.products) {
    object["products"].push_back({{"type", rate.type},
                                  {"rows", rate.rows},
                                  {"seconds_per_weight", rate.seconds_per_weight}});
  }
  object["passes"] = Json::array();
  for (const CheckedPass& pass : check.passes) {
    object["passes"].push_back({{"context", pass.context},
                                {"rows", pass.rows},
                                {"measured_seconds", pass.measured_seconds},
                                {"predicted_seconds", pass.predicted_seconds},
                                {"ratio", pass.ratio()},
                                {"roofline_seconds", pass.roofline_seconds},
                                {"calibrated", pass.calibrated}});
  }
  object["predicted"] = check.n_predicted();
  object["near"] = check.n_near(kNearShare);
  object["near_by_roofline"] = check.n_near_roofline(kNearShare);
  return dump(object);
}

}  // namespace

int run_plan_check(const ModelFlags& model_flags, const PlanCheckRun& run) {
  CheckOptions options;
  if (!run.rows.empty()) options.rows = run.rows;
  if (!run.contexts.empty()) options.contexts = run.contexts;
  options.rounds = run.rounds;
  Interrupt interrupt;
  const std::shared_ptr<const Model> model = load_model(model_flags, interrupt);
  PlanCheck check;
  {
    BenchProgress progress(interrupt);
    options.progress = [&progress](std::string_view step, double share) {
      progress.show(step, share);
    };
    check = check_plan(*model, options);
  }
  interrupt.throw_if_raised();
  Output output;
  output.write(run.json ? to_json(check, *model) : to_table(check, *model));
  output.check();
  return 0;
}

}  // namespace outrider::cli
