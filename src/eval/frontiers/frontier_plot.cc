// SPDX-License-Identifier: Apache-2.0
#include "eval/frontiers/frontier_plot.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <string_view>

#include "base/files/gnuplot.h"

namespace outrider::eval {
namespace {

// Colours that colour-blind readers can distinguish (Okabe and Ito 2008); beyond these, marks
// differ.
constexpr std::array<std::string_view, 11> kColours = {"#000000", "#0072b2", "#d55e00", "#009e73",
                                                       "#cc79a7", "#e69f00", "#56b4e9", "#8c6d31",
                                                       "#7b3294", "#878787", "#b2182b"};
constexpr std::array<int, 6> kMarks = {7, 5, 9, 11, 13, 4};

bool is_finite(const PlotPoint& point) {
  return std::isfinite(point.x.value) && std::isfinite(point.y.value);
}

// An unknown interval has length 0.
std::string with_ends(const Figure& x, const Figure& y) {
  const auto end = [](double end, double value) { return std::isfinite(end) ? end : value; };
  return fmt::format("{:.6g} {:.6g} {:.6g} {:.6g} {:.6g} {:.6g}\n", x.value, y.value,
                     end(x.low, x.value), end(x.high, x.value), end(y.low, y.value),
                     end(y.high, y.value));
}

}  // namespace

Drawn draw(const FrontierPlot& plot, const std::filesystem::path& picture) {
  std::string data;
  std::string bars;
  std::string curves;
  std::size_t n_drawn = 0;
  for (const Curve& curve : plot.curves) {
    std::string rows;
    std::size_t n_points = 0;
    for (const PlotPoint& point : curve.points) {
      if (!is_finite(point)) continue;
      rows += with_ends(point.x, point.y);
      ++n_points;
    }
    if (n_points == 0) continue;
    const std::string style =
        fmt::format("linecolor '{}' pointtype {} pointsize {}", kColours[n_drawn % kColours.size()],
                    kMarks[n_drawn % kMarks.size()], n_points == 1 ? "1.1" : "0.5");
    data += fmt::format("$curve{} << EOD\n{}EOD\n", n_drawn, rows);
    bars += fmt::format(
        "$curve{} using 1:2:3:4:5:6 with xyerrorbars linecolor '{}' pointtype 0 linewidth 0.4 "
        "notitle, \\\n",
        n_drawn, kColours[n_drawn % kColours.size()]);
    curves += fmt::format(
        "{}$curve{} using 1:2 with {} {} linewidth 1.5 title {}", n_drawn == 0 ? "" : ", \\\n",
        n_drawn, n_points == 1 ? "points" : "linespoints", style, gnuplot_text(curve.name));
    ++n_drawn;
  }
  if (n_drawn == 0) return Drawn::no_point;
  const std::string script = fmt::format(
      "set title {}\nset xlabel {}\nset ylabel {}\nset grid linecolor '#dddddd'\n"
      "set key outside right top\nset bars 0\nset offsets graph 0.02, graph 0.02, graph 0.02, "
      "graph 0.02\n{}plot {}{}\n",
      gnuplot_text(plot.title), gnuplot_text(plot.x_label), gnuplot_text(plot.y_label), data,
      plot.bars ? bars : std::string(), curves);
  return draw_with_gnuplot(picture, 800, 480, script) ? Drawn::yes : Drawn::failed;
}

}  // namespace outrider::eval
