// SPDX-License-Identifier: Apache-2.0
// Writes a comparison of methods as JSON, and reads its rounds and passes back.
#ifndef OUTRIDER_MEASURE_COMPARISON_COMPARISON_JSON_H_
#define OUTRIDER_MEASURE_COMPARISON_COMPARISON_JSON_H_

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "outrider/method_report.h"

namespace outrider {

using OrderedJson = nlohmann::ordered_json;

// Unknown numbers are null. Bytes that are not UTF-8 become U+FFFD. indentation -1: one line.
std::string json_text(const OrderedJson& value, int indentation = -1);

// The settings under which rounds are compared: methods (without drafter_options), the prompts'
// number and digest, model, machine, version.
OrderedJson settings_json(const MethodComparison& comparison);

OrderedJson round_json(const ComparedRound& round);
// Throws nlohmann::json::exception for a missing member or one of another JSON type. Other values
// are not checked.
ComparedRound read_round(const OrderedJson& value);

OrderedJson passes_json(const PassCosts& passes, int context);
// The passes alone, with their spreads. Throws as read_round(), also for null in place of a number.
PassCosts read_passes(const OrderedJson& value);

OrderedJson figures_json(const MethodFigures& figures, const MethodComparison& comparison);

}  // namespace outrider

#endif  // OUTRIDER_MEASURE_COMPARISON_COMPARISON_JSON_H_
