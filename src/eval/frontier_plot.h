// A picture of quality against cost: one curve a family of rules.
#ifndef OUTRIDER_EVAL_FRONTIER_PLOT_H_
#define OUTRIDER_EVAL_FRONTIER_PLOT_H_

#include <filesystem>
#include <string>
#include <vector>

namespace outrider::eval {

// A value with the ends of its interval; NaN where nothing is known of them.
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
  std::vector<PlotPoint> points;  // in the order in which they are joined; one alone is a mark
};

struct FrontierPlot {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<Curve> curves;
  // Draw the points' intervals. Where all points are measured on the same items without noise of
  // their own, these move together, and bars would say that curves cannot be told apart.
  bool bars = true;
};

enum class Drawn { yes, no_point, failed };  // failed: gnuplot is missing, or fails

// Draws curves through the points that are finite, if there are any. Throws Error where nothing can
// be written.
Drawn draw(const FrontierPlot& plot, const std::filesystem::path& picture);

}  // namespace outrider::eval

#endif  // OUTRIDER_EVAL_FRONTIER_PLOT_H_
