// Pictures of a comparison of methods, as SVG that stands inside a page. Colours are variables of
// the page's style (comparison_html.cc): --ink, --faint, --grid, --method-0.., --part-0...
#ifndef OUTRIDER_MEASURE_COMPARISON_PLOTS_H_
#define OUTRIDER_MEASURE_COMPARISON_PLOTS_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "outrider/method_report.h"

namespace outrider {

// Colours that methods have; more methods than these share some.
inline constexpr std::size_t kMethodColours = 8;

// Text inside HTML and SVG, and inside the quotation marks of an attribute.
std::string html_escaped(std::string_view text);

// All take the figures of one temperature. labels: of the comparison's methods.

// A row for each category, a mark for each method, a line for its interval; plain decoding is the
// line at 1.
std::string speedup_plot(std::span<const MethodFigures> figures,
                         const std::vector<std::string>& labels);
// A panel for each method: the share of rounds by the drafted tokens that stood.
std::string lengths_plot(std::span<const MethodFigures> figures,
                         const std::vector<std::string>& labels);
// A bar for each method: the time a token takes, in plain decoding's, parted by what it was spent
// on.
std::string times_plot(std::span<const MethodFigures> figures,
                       const std::vector<std::string>& labels);

}  // namespace outrider

#endif  // OUTRIDER_MEASURE_COMPARISON_PLOTS_H_
