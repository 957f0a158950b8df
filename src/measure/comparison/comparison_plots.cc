// SPDX-License-Identifier: Apache-2.0
#include "measure/comparison/comparison_plots.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "measure/comparison/figure_text.h"

namespace outrider {
namespace {

// Sizes in units of the drawing, which the page scales to its width. Text of 12 units is then about
// as large as the page's own.
constexpr double kWidth = 760;
constexpr double kTextHeight = 16;
constexpr double kNames = 200;            // the names' column on the left
constexpr double kRight = 24;             // left free for the last number of an axis
constexpr std::size_t kLongestName = 26;  // letters of 7 units that fit into kNames

// The part of a text that is at its position.
enum class Anchor { begin, middle, end };

// Shapes of one figure. Coordinates are in units from the upper left corner.
class Drawing {
 public:
  void text(double x, double y, std::string_view words, Anchor anchor = Anchor::begin,
            std::string_view colour = "--ink") {
    constexpr std::array<const char*, 3> kAnchors = {"start", "middle", "end"};
    shapes_ += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" fill=\"var({})\">{}</text>\n", x, y,
        kAnchors[static_cast<std::size_t>(anchor)], colour, html_escaped(words));
  }
  void line(double x1, double y1, double x2, double y2, std::string_view colour, double width) {
    shapes_ += fmt::format(
        "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"var({})\" "
        "stroke-width=\"{}\"/>\n",
        x1, y1, x2, y2, colour, width);
  }
  // outline: a path around the centre, in steps relative to it.
  void mark(double x, double y, std::string_view outline, std::string_view colour,
            std::string_view remark) {
    shapes_ +=
        fmt::format("<path d=\"M{:.1f} {:.1f}{}\" fill=\"var({})\"><title>{}</title></path>\n", x,
                    y, outline, colour, html_escaped(remark));
  }
  void bar(double x, double y, double width, double height, std::string_view colour,
           std::string_view remark) {
    shapes_ += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"var({})\">"
        "<title>{}</title></rect>\n",
        x, y, std::max(width, 0.0), std::max(height, 0.0), colour, html_escaped(remark));
  }

  std::string finish(double height, std::string_view what) const {
    return fmt::format(
        "<svg viewBox=\"0 0 {} {:.0f}\" role=\"img\" aria-label=\"{}\" font-size=\"12\">\n{}"
        "</svg>\n",
        kWidth, height, html_escaped(what), shapes_);
  }

 private:
  std::string shapes_;
};

// The first colour is reserved for plain decoding.
constexpr std::size_t kOthersColours = kMethodColours - 1;
std::string method_colour(std::size_t method) {
  return fmt::format("--method-{}", method == 0 ? 0 : 1 + (method - 1) % kOthersColours);
}

// When colours repeat, marks have another outline, some 8 units wide: circles, squares, diamonds,
// triangles.
std::string_view method_outline(std::size_t method) {
  constexpr std::array<std::string_view, 4> kOutlines = {
      "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z", "m-3.5 -3.5h7v7h-7z", "m0 -5l5 5l-5 5l-5 -5z",
      "m0 -4.5l4.5 8h-9z"};
  return method == 0 ? kOutlines[0] : kOutlines[(method - 1) / kOthersColours % kOutlines.size()];
}

std::string shortened(std::string_view name) {
  if (name.size() <= kLongestName) return std::string(name);
  return std::string(name.substr(0, kLongestName - 3)) + "...";
}

// Numbers along an axis from 0 to `max`: few, at round steps.
struct Axis {
  double max = 1;
  double step = 1;
  double at(double value) const { return kNames + value / max * (kWidth - kNames - kRight); }
};

Axis axis_to(double largest) {
  constexpr std::array<double, 9> kSteps = {0.1, 0.2, 0.25, 0.5, 1, 2, 5, 10, 20};
  constexpr double kMaxNumbers = 8;
  const double max = largest > 0 && std::isfinite(largest) ? largest * 1.05 : 1;
  for (const double step : kSteps) {
    if (max / step <= kMaxNumbers) return {.max = max, .step = step};
  }
  return {.max = max, .step = max / kMaxNumbers};
}

void draw_axis(Drawing& drawing, const Axis& axis, double top, double bottom) {
  for (int number = 0; number * axis.step <= axis.max; ++number) {
    const double value = number * axis.step;
    drawing.line(axis.at(value), top, axis.at(value), bottom, "--grid", 1);
    drawing.text(axis.at(value), bottom + kTextHeight, fmt::format("{:g}x", value), Anchor::middle,
                 "--faint");
  }
}

// Draws names, one per line, each after draw_sign(index, the centre of its sign). Returns where
// they end.
template <class DrawSign>
double draw_legend(Drawing& drawing, const std::vector<std::string>& names,
                   const DrawSign& draw_sign) {
  double y = kTextHeight;
  for (std::size_t index = 0; index < names.size(); ++index) {
    draw_sign(index, kNames + 6, y - 4);
    drawing.text(kNames + 18, y, names[index]);
    y += kTextHeight;
  }
  return y;
}

double reach_of(const Estimate& estimate) {
  return std::isfinite(estimate.high) ? std::max(estimate.high, estimate.value) : estimate.value;
}

std::string speedup_remark(const MethodFigures& figures, const std::string& label) {
  return fmt::format("{}, {}: {}", label, show_category(figures.category),
                     show_estimate(figures.speedup, 2));
}

std::vector<const MethodFigures*> of_all_prompts(std::span<const MethodFigures> figures,
                                                 bool with_plain) {
  std::vector<const MethodFigures*> found;
  for (const MethodFigures& one : figures) {
    if (one.category.empty() && (with_plain || one.method != 0)) found.push_back(&one);
  }
  return found;
}

// A method's rounds by accepted length, with the long ones combined at the end.
constexpr std::size_t kMaxBars = 13;
std::vector<double> length_shares(const MethodFigures& figures) {
  std::vector<double> shares(std::min(figures.accepted_lengths.size(), kMaxBars), 0.0);
  double n_rounds = 0;
  for (std::size_t length = 0; length < figures.accepted_lengths.size(); ++length) {
    const auto n = static_cast<double>(figures.accepted_lengths[length]);
    shares[std::min(length, kMaxBars - 1)] += n;
    n_rounds += n;
  }
  for (double& share : shares) share /= n_rounds;
  return shares;
}

}  // namespace

std::string html_escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string speedup_plot(std::span<const MethodFigures> figures,
                         const std::vector<std::string>& labels) {
  constexpr double kMark = 13;  // from one method's mark to the next
  constexpr double kGap = 12;   // between categories
  std::vector<std::string> categories;
  std::vector<std::string> names;
  std::vector<std::size_t> methods;  // indices of the names
  double largest = 1;
  for (const MethodFigures& one : figures) {
    if (one.method == 0) continue;
    largest = std::max(largest, reach_of(one.speedup));
    if (std::find(categories.begin(), categories.end(), one.category) == categories.end()) {
      categories.push_back(one.category);
    }
    if (one.category.empty()) {
      names.push_back(labels[one.method]);
      methods.push_back(one.method);
    }
  }
  Drawing drawing;
  const double top = draw_legend(drawing, names, [&](std::size_t index, double x, double y) {
    drawing.mark(x, y, method_outline(methods[index]), method_colour(methods[index]), names[index]);
  });
  const double block = kMark * static_cast<double>(names.size()) + kGap;
  const double bottom = top + block * static_cast<double>(categories.size());
  const Axis axis = axis_to(largest);
  draw_axis(drawing, axis, top, bottom);
  drawing.line(axis.at(1), top, axis.at(1), bottom, "--ink", 1.5);
  double y = top;
  for (const std::string& category : categories) {
    drawing.text(kNames - 10, y + block / 2 + 4, shortened(show_category(category)), Anchor::end);
    double mark = y + kGap;
    for (const MethodFigures& one : figures) {
      if (one.method == 0 || one.category != category) continue;
      const std::string colour = method_colour(one.method);
      const Estimate& speedup = one.speedup;
      if (std::isfinite(speedup.low) && std::isfinite(speedup.high)) {
        drawing.line(axis.at(speedup.low), mark, axis.at(speedup.high), mark, colour, 2);
      }
      if (std::isfinite(speedup.value)) {
        drawing.mark(axis.at(speedup.value), mark, method_outline(one.method), colour,
                     speedup_remark(one, labels[one.method]));
      }
      mark += kMark;
    }
    y += block;
  }
  return drawing.finish(bottom + 1.5 * kTextHeight, "speed-up by category");
}

std::string lengths_plot(std::span<const MethodFigures> figures,
                         const std::vector<std::string>& labels) {
  constexpr double kPanel = 90;  // height of one method's bars
  constexpr double kPercent = 100;
  Drawing drawing;
  double y = kTextHeight;
  for (const MethodFigures* one : of_all_prompts(figures, /*with_plain=*/false)) {
    const std::vector<double> shares = length_shares(*one);
    const double bar = (kWidth - kNames - kRight) / static_cast<double>(kMaxBars);
    drawing.text(kNames, y, labels[one->method]);
    const double bottom = y + kTextHeight + kPanel;
    drawing.line(kNames, bottom, kWidth - kRight, bottom, "--grid", 1);
    for (std::size_t length = 0; length < shares.size(); ++length) {
      const double height = shares[length] * kPanel;
      const double x = kNames + static_cast<double>(length) * bar;
      const bool is_rest = length + 1 == kMaxBars;
      const std::string name = fmt::format("{}{}", length, is_rest ? "+" : "");
      const std::string share = fmt::format("{:.0f}%", shares[length] * kPercent);
      drawing.bar(x + 2, bottom - height, bar - 4, height, method_colour(one->method),
                  name + ": " + share);
      drawing.text(x + bar / 2, bottom - height - 3, share, Anchor::middle, "--faint");
      drawing.text(x + bar / 2, bottom + kTextHeight, name, Anchor::middle, "--faint");
    }
    drawing.text(kNames - 10, bottom + kTextHeight, "tokens that stood", Anchor::end, "--faint");
    y = bottom + 3 * kTextHeight;
  }
  return drawing.finish(y, "rounds by drafted tokens that stood");
}

std::string times_plot(std::span<const MethodFigures> figures,
                       const std::vector<std::string>& labels) {
  constexpr double kBar = 18;
  constexpr double kStep = 26;
  const std::vector<std::string> parts = {"target passes", "draft", "verify", "rest"};
  const std::vector<std::string> colours = {"--part-0", "--part-1", "--part-2", "--part-3"};
  const std::vector<const MethodFigures*> shown = of_all_prompts(figures, /*with_plain=*/true);
  double longest = 1;
  for (const MethodFigures* one : shown) longest = std::max(longest, 1 / one->speedup.value);
  const Axis axis = axis_to(longest);
  Drawing drawing;
  const double top = draw_legend(drawing, parts, [&](std::size_t index, double x, double y) {
    drawing.bar(x - 6, y - 6, 12, 10, colours[index], parts[index]);
  });
  const double bottom = top + kStep * static_cast<double>(shown.size());
  draw_axis(drawing, axis, top, bottom);
  double y = top + (kStep - kBar) / 2;
  for (const MethodFigures* one : shown) {
    drawing.text(kNames - 10, y + kBar - 5, shortened(labels[one->method]), Anchor::end);
    const std::array<Estimate, 4> shares = {one->target_share, one->draft_share, one->verify_share,
                                            one->rest_share};
    double from = 0;
    for (std::size_t part = 0; part < shares.size(); ++part) {
      // Times are measured separately: a negative rest counts as 0.
      const double to = from + std::max(shares[part].value, 0.0) / one->speedup.value;
      drawing.bar(
          axis.at(from), y, axis.at(to) - axis.at(from), kBar, colours[part],
          fmt::format("{}, {}: {}", labels[one->method], parts[part], show_share(shares[part])));
      from = to;
    }
    y += kStep;
  }
  drawing.line(axis.at(1), top, axis.at(1), bottom, "--ink", 1.5);
  return drawing.finish(bottom + 1.5 * kTextHeight, "where the time went");
}

}  // namespace outrider
