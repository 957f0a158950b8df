// SPDX-License-Identifier: Apache-2.0
// Formats figures for users, the same in every report.
#ifndef OUTRIDER_MEASURE_COMPARISON_FIGURE_TEXT_H_
#define OUTRIDER_MEASURE_COMPARISON_FIGURE_TEXT_H_

#include <string>
#include <string_view>
#include <vector>

#include "outrider/method_report.h"

namespace outrider {

// An unknown figure.
inline constexpr const char* kNoFigure = "-";

// "1.21" with that many decimals; kNoFigure for NaN.
std::string show_value(double value, int digits);
// "1.21 (1.10 to 1.31)"; without the interval if that is unknown.
std::string show_estimate(const Estimate& estimate, int digits);
// "23% (21 to 26)" for 0.23.
std::string show_share(const Estimate& share);
// "7" tokens; kNoFigure for -1.
std::string show_length(int length);
// "12 of 12", or "not comparable" if the method draws other texts of the same distribution.
std::string show_same_texts(const MethodFigures& figures);
// "all" for all prompts.
std::string show_category(const std::string& category);

// The labels of methods in reports: their names without the folders of paths, if these are
// distinct; else the names.
std::vector<std::string> method_labels(const CompareOptions& options);

// "1 prompt", "2 prompts".
std::string counted(std::size_t n, std::string_view thing);

// What was measured, in sentences: model, machine, prompts, settings.
std::vector<std::string> comparison_facts(const MethodComparison& comparison);

// How the bounds are computed, a line each.
std::vector<std::string> bound_formulas();

}  // namespace outrider

#endif  // OUTRIDER_MEASURE_COMPARISON_FIGURE_TEXT_H_
