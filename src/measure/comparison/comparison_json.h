// SPDX-License-Identifier: Apache-2.0
// Writes a comparison of methods as JSON, and reads it back.
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

// Everything that determines a round's result: methods, prompts, settings, model, machine, version.
OrderedJson settings_json(const MethodComparison& comparison);

OrderedJson round_json(const ComparedRound& round);
// Throws nlohmann::json::exception for anything else.
ComparedRound read_round(const OrderedJson& value);

OrderedJson passes_json(const PassCosts& passes, int context);
// The passes alone, with their spreads. Throws as read_round().
PassCosts read_passes(const OrderedJson& value);

OrderedJson figures_json(const MethodFigures& figures, const MethodComparison& comparison);

}  // namespace outrider

#endif  // OUTRIDER_MEASURE_COMPARISON_COMPARISON_JSON_H_
