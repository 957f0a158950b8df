// SPDX-License-Identifier: Apache-2.0
// A tuning as JSON, for scripts.
#include <cmath>

#include "measure/comparison/comparison_json.h"
#include "outrider/tune_drafters.h"

namespace outrider {
namespace {

OrderedJson number(double value) {
  return std::isfinite(value) ? OrderedJson(value) : OrderedJson(nullptr);
}

OrderedJson estimate(const Estimate& estimate) {
  return {{"value", number(estimate.value)},
          {"low", number(estimate.low)},
          {"high", number(estimate.high)}};
}

const char* name_of(Finding finding) {
  switch (finding) {
    case Finding::pays:
      return "pays";
    case Finding::costs:
      return "costs";
    case Finding::not_certain:
      break;
  }
  return "not certain";
}

OrderedJson comparison(const MethodComparison& of) {
  return OrderedJson::parse(comparison_json(of, method_figures(of)));
}

}  // namespace

std::string tuning_json(const Tuning& tuning) {
  const std::vector<TunedMethod> methods = tuning.methods();
  OrderedJson value;
  value["format"] = "outrider-tuning";
  value["format_version"] = 1;
  value["complete"] = !tuning.cancelled;
  value["seconds"] = tuning.seconds;
  value["profile_written"] = tuning.profile_written;
  value["left_out"] = tuning.left_out;
  OrderedJson advice = OrderedJson::array();
  for (const double temperature : tuning.drafters.options.temperatures) {
    const Advice one = recommend(methods, temperature);
    OrderedJson entry = {{"temperature", temperature}, {"finding", name_of(one.finding)}};
    if (one.method < methods.size()) {
      entry["method"] = one.method;
      entry["flags"] = one.finding == Finding::pays ? flags_of(methods[one.method]) : std::string();
    }
    entry["prompts_needed"] = one.prompts_needed;
    entry["seconds_needed"] = nullptr;
    if (one.method < methods.size()) {
      entry["seconds_needed"] = number(tuning.seconds_for(methods[one.method], one.prompts_needed));
    }
    advice.push_back(std::move(entry));
  }
  value["advice"] = std::move(advice);
  OrderedJson list = OrderedJson::array();
  for (const TunedMethod& method : methods) {
    list.push_back({{"drafter", method.drafter},
                    {"tree", method.tree},
                    {"temperature", method.temperature},
                    {"prompts", method.n_prompts},
                    {"over_plain", estimate(method.over_plain)},
                    {"over_auto", estimate(method.over_auto)},
                    {"tau", number(method.tau)},
                    {"accepted_share", number(method.accepted_share)},
                    {"differs", method.differs}});
  }
  value["methods"] = std::move(list);
  value["drafters"] = comparison(tuning.drafters);
  if (tuning.shapes) value["shapes"] = comparison(*tuning.shapes);
  return json_text(value, 1) + "\n";
}

}  // namespace outrider
