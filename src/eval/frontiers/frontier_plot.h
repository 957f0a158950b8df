// SPDX-License-Identifier: Apache-2.0
// A plot of quality against cost, with one curve for each family of rules.
#ifndef OUTRIDER_EVAL_FRONTIERS_FRONTIER_PLOT_H_
#define OUTRIDER_EVAL_FRONTIERS_FRONTIER_PLOT_H_

#include <filesystem>
#include <string>
#include <vector>

namespace outrider::eval {

// A value with the ends of its interval; NaN: unknown.
struct Figure {
  double value = 0;
  double low = 0;
  double high = 0;
};

struct PlotPoint {
  Figure x;
  Figure y;
};

struct Curve {
  std::string name;
  std::vector<PlotPoint> points;  // in the order in which they are joined; a single one is a mark
};

struct FrontierPlot {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<Curve> curves;
  // Draw the points' intervals. Points measured on the same items without independent noise move
  // together; bars would wrongly suggest that curves cannot be distinguished.
  bool bars = true;
};

enum class Drawn { yes, no_point, failed };  // failed: gnuplot is missing, or fails

// Draws curves through the finite points, if any. Throws Error if the files cannot be written.
Drawn draw(const FrontierPlot& plot, const std::filesystem::path& picture);

}  // namespace outrider::eval

#endif  // OUTRIDER_EVAL_FRONTIERS_FRONTIER_PLOT_H_
