// SPDX-License-Identifier: Apache-2.0
// Plots of a comparison of methods, as SVG inside a page. Colours are variables of the page's style
// (comparison_html.cc): --ink, --faint, --grid, --method-0.., --part-0...
#ifndef OUTRIDER_MEASURE_COMPARISON_COMPARISON_PLOTS_H_
#define OUTRIDER_MEASURE_COMPARISON_COMPARISON_PLOTS_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "outrider/method_report.h"

namespace outrider {

// The number of colours; further methods reuse them.
inline constexpr std::size_t kMethodColours = 8;

// Escapes text for HTML and SVG, including quoted attributes.
std::string html_escaped(std::string_view text);

// All functions take the figures of one temperature. labels: of the comparison's methods.

// A row for each category, a mark for each method, a line for its interval; plain decoding is the
// line at 1.
std::string speedup_plot(std::span<const MethodFigures> figures,
                         const std::vector<std::string>& labels);
// A panel for each method: the share of rounds by the number of accepted tokens.
std::string lengths_plot(std::span<const MethodFigures> figures,
                         const std::vector<std::string>& labels);
// A bar for each method: the time for a token relative to plain decoding, divided by what it was
// spent on.
std::string times_plot(std::span<const MethodFigures> figures,
                       const std::vector<std::string>& labels);

}  // namespace outrider

#endif  // OUTRIDER_MEASURE_COMPARISON_COMPARISON_PLOTS_H_
