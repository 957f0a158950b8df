// SPDX-License-Identifier: Apache-2.0
// A comparison of methods as one page for readers who do not know the project: light and dark,
// without references to outside files, scripts or addresses.
//
// Every figure of a table is in a cell <td data-name="NAME">, within a row <tr data-row="N">: N
// counts the comparison's figures, NAME is the name in the JSON report.
#include <fmt/format.h>

#include <initializer_list>

#include "measure/comparison/comparison_plots.h"
#include "measure/comparison/figure_text.h"
#include "outrider/method_report.h"

namespace outrider {
namespace {

// Colours have a contrast of 3 to 1 with the background, and differ in lightness as well as hue,
// for readers who cannot distinguish red and green.
constexpr const char* kStyle = R"(
:root { color-scheme: light dark; --ink: #1d2733; --faint: #5b6775; --grid: #d5dbe2; --paper: #ffffff;
  --method-0: #5b6775; --method-1: #0b5cad; --method-2: #b3480b; --method-3: #1a7a52;
  --method-4: #8a2f86; --method-5: #7d6100; --method-6: #008291; --method-7: #ad1f3d;
  --part-0: #0b5cad; --part-1: #c46a12; --part-2: #1a7a52; --part-3: #8b95a1; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6ebf1; --faint: #a3afbc; --grid: #38424e; --paper: #14191f;
    --method-0: #a3afbc; --method-1: #6cb2ff; --method-2: #ff9d5c; --method-3: #5fd19c;
    --method-4: #e08adb; --method-5: #e0c050; --method-6: #4fd0de; --method-7: #ff8097;
    --part-0: #6cb2ff; --part-1: #ffb066; --part-2: #5fd19c; --part-3: #75808c; } }
body { margin: 2rem auto; max-width: 66rem; padding: 0 1rem; background: var(--paper);
  color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
svg { width: 100%; height: auto; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.85rem; }
th, td { padding: 0.25rem 0.8rem 0.25rem 0; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--grid); white-space: nowrap; }
td:first-child { white-space: normal; overflow-wrap: anywhere; min-width: 7rem; }
tr.all td { font-weight: 600; }
.note { color: var(--faint); }
)";

std::string paragraph(const std::string& text, const char* kind = "") {
  const std::string attribute = *kind == '\0' ? "" : fmt::format(" class=\"{}\"", kind);
  return fmt::format("<p{}>{}</p>\n", attribute, html_escaped(text));
}

std::string heading(int level, const std::string& text) {
  return fmt::format("<h{0}>{1}</h{0}>\n", level, html_escaped(text));
}

// A table whose rows are figures of the comparison.
class FigureTable {
 public:
  FigureTable(std::initializer_list<const char*> names, const std::vector<std::string>& labels)
      : labels_(&labels) {
    html_ = "<div class=\"wide\"><table>\n<tr><th>method</th><th>category</th>";
    for (const char* name : names) html_ += fmt::format("<th>{}</th>", html_escaped(name));
    html_ += "</tr>\n";
  }
  void begin_row(std::size_t row, const MethodFigures& figures) {
    is_empty_ = false;
    html_ += fmt::format("<tr data-row=\"{}\"{}><td>{}</td><td>{}</td>", row,
                         figures.category.empty() ? " class=\"all\"" : "",
                         html_escaped((*labels_)[figures.method]),
                         html_escaped(show_category(figures.category)));
  }
  void add(const char* name, const std::string& text) {
    html_ += fmt::format("<td data-name=\"{}\">{}</td>", name, html_escaped(text));
  }
  void end_row() { html_ += "</tr>\n"; }
  std::string finish() const { return is_empty_ ? std::string() : html_ + "</table></div>\n"; }

 private:
  const std::vector<std::string>* labels_;
  std::string html_;
  bool is_empty_ = true;
};

// One temperature's figures and their indices among all.
struct Section {
  std::size_t first_row = 0;
  std::span<const MethodFigures> figures;
};

std::vector<Section> sections_of(std::span<const MethodFigures> figures) {
  std::vector<Section> sections;
  std::size_t begin = 0;
  while (begin < figures.size()) {
    std::size_t end = begin;
    while (end < figures.size() && figures[end].temperature == figures[begin].temperature) ++end;
    sections.push_back({.first_row = begin, .figures = figures.subspan(begin, end - begin)});
    begin = end;
  }
  return sections;
}

std::string gains(const Section& section, const std::vector<std::string>& labels) {
  FigureTable table({"prompts", "speed-up", "tokens a second", "tau", "first token", "same text"},
                    labels);
  for (std::size_t index = 0; index < section.figures.size(); ++index) {
    const MethodFigures& one = section.figures[index];
    table.begin_row(section.first_row + index, one);
    table.add("prompts", fmt::format("{}", one.n_prompts));
    table.add("speedup", show_estimate(one.speedup, 2));
    table.add("tokens_per_second", show_estimate(one.tokens_per_second, 1));
    table.add("tau", show_estimate(one.tau, 2));
    table.add("first_token_ratio", show_estimate(one.first_token_ratio, 2));
    table.add("same_texts", show_same_texts(one));
    table.end_row();
  }
  return table.finish();
}

std::string bounds(const Section& section, const std::vector<std::string>& labels) {
  FigureTable table({"of oracle", "oracle length", "perfect drafter", "its length", "free drafting",
                     "a level, in passes"},
                    labels);
  for (std::size_t index = 0; index < section.figures.size(); ++index) {
    const MethodFigures& one = section.figures[index];
    if (!one.bounds) continue;
    table.begin_row(section.first_row + index, one);
    table.add("oracle_share", show_estimate(one.bounds->oracle_share, 2));
    table.add("oracle_length", show_estimate(one.bounds->oracle, 2));
    table.add("perfect_drafter", show_estimate(one.bounds->perfect, 2));
    table.add("perfect_length", show_length(one.bounds->perfect_length));
    table.add("free_drafting", show_estimate(one.bounds->free, 2));
    table.add("level_cost", show_estimate(one.bounds->level_cost, 3));
    table.end_row();
  }
  return table.finish();
}

std::string times(const Section& section, const std::vector<std::string>& labels) {
  FigureTable table({"draft", "target passes", "verify", "rest"}, labels);
  for (std::size_t index = 0; index < section.figures.size(); ++index) {
    const MethodFigures& one = section.figures[index];
    if (!one.category.empty()) continue;
    table.begin_row(section.first_row + index, one);
    table.add("draft_share", show_share(one.draft_share));
    table.add("target_share", show_share(one.target_share));
    table.add("verify_share", show_share(one.verify_share));
    table.add("rest_share", show_share(one.rest_share));
    table.end_row();
  }
  return table.finish();
}

// Draft places with columns: n-alphas go to 4-alpha, the acceptance at place 5.
constexpr std::size_t kPlaces = 5;

std::string places(const Section& section, const std::vector<std::string>& labels) {
  FigureTable table({"place 1", "place 2", "place 3", "place 4", "place 5", "n-alpha"}, labels);
  for (std::size_t index = 0; index < section.figures.size(); ++index) {
    const MethodFigures& one = section.figures[index];
    if (one.places.empty()) continue;
    table.begin_row(section.first_row + index, one);
    for (std::size_t place = 0; place < kPlaces; ++place) {
      const bool is_known = place < one.places.size();
      table.add(fmt::format("acceptance_{}", place + 1).c_str(),
                is_known ? show_estimate(one.places[place].acceptance, 2) : kNoFigure);
    }
    table.add("has_alphas", one.has_alphas ? "place n + 1" : kNoFigure);
    table.end_row();
  }
  return table.finish();
}

std::string pass_table(const PassCosts& costs) {
  constexpr double kMilli = 1e3;
  std::string html =
      "<div class=\"wide\"><table>\n<tr><th>rows</th><th>c(rows)</th><th>milliseconds, median</th>"
      "<th>from</th><th>to</th></tr>\n";
  for (const PassCost& pass : costs.passes) {
    html += fmt::format(
        "<tr><td>{}</td><td>{:.2f}</td><td>{:.2f}</td><td>{:.2f}</td><td>{:.2f}</td>"
        "</tr>\n",
        pass.rows, pass.ratio, pass.seconds.median * kMilli, pass.seconds.min * kMilli,
        pass.seconds.max * kMilli);
  }
  return html + "</table></div>\n";
}

std::string section_html(const Section& section, const std::vector<std::string>& labels) {
  std::string html = heading(2, fmt::format("Temperature {}", section.figures.front().temperature));
  html += heading(3, "Speed-up by category");
  html += paragraph(
      "How to read it: each mark is one method on the prompts of one kind. 2x means that text "
      "appears twice as fast as without drafts; left of the line at 1x a method slows the "
      "model down. The line through a mark is the 95% interval: other prompts of this kind would "
      "most likely move the mark within it.");
  html += speedup_plot(section.figures, labels);
  html += paragraph(
      "A method's worst category stands first. tau: tokens that one pass of the model brings. "
      "first token: how long one waits for it, in multiples of plain decoding's wait. same text: "
      "prompts to which the answer is plain decoding's to the last token.",
      "note");
  html += gains(section, labels);
  html += heading(3, "How much of a draft stands");
  html += paragraph(
      "How to read it: a draft is a guess of the next tokens, which the model checks in one pass. "
      "A bar says in what share of the passes so many guessed tokens were right. Tall bars on the "
      "right mean long steps; a tall bar at 0 means that drafting was in vain.");
  html += lengths_plot(section.figures, labels);
  html += paragraph(
      "By place in the draft: how often the token there stands where all before it do. For heads "
      "that draft chains the place n + 1 is what the EAGLE paper calls n-alpha.",
      "note");
  html += places(section, labels);
  html += heading(3, "Where the time went");
  html += paragraph(
      "How to read it: a bar is the time that one token takes, plain decoding's being 1x. A bar "
      "that ends left of the line at 1x is faster. Its colours say what the time was spent on.");
  html += times_plot(section.figures, labels);
  html += times(section, labels);
  const std::string bound_table = bounds(section, labels);
  if (bound_table.empty()) return html;
  html += heading(3, "What could be gained at most");
  html += paragraph(
      "How to read it: \"oracle length\" is the speed-up if every draft had ended just where it "
      "went wrong; \"of oracle\" says how much of that was reached. \"perfect drafter\" is the "
      "speed-up if every guess were right, \"free drafting\" if guessing cost nothing.");
  return html + bound_table;
}

}  // namespace

std::string comparison_html(const MethodComparison& comparison,
                            std::span<const MethodFigures> figures) {
  const std::vector<std::string> labels = method_labels(comparison.options);
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "
      "name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>Drafting methods "
      "compared</title>\n<style>{}</style>\n</head>\n<body>\n",
      kStyle);
  html += heading(1, "Drafting methods compared");
  html += paragraph(
      "A language model writes one token (a word or a part of one) a pass. With speculative "
      "decoding something cheaper guesses the next tokens, and the model checks all of them in one "
      "pass: the text stays the model's own, and comes sooner where the guesses are good. This "
      "page compares ways to guess. Every prompt was answered by all of them in turn, and by the "
      "model alone, which is called plain.");
  for (const std::string& fact : comparison_facts(comparison)) html += paragraph(fact, "note");
  html += paragraph("In brackets: 95% intervals over prompts (bootstrap, 1000 resamples).", "note");
  html += "<ul>\n";
  for (std::size_t method = 0; method < labels.size(); ++method) {
    html += fmt::format("<li><b>{}</b>: <code>{}</code></li>\n", html_escaped(labels[method]),
                        html_escaped(comparison.options.methods[method].name));
  }
  html += "</ul>\n";
  for (const Section& section : sections_of(figures)) html += section_html(section, labels);
  if (comparison.passes) {
    html += heading(2, "How the bounds are computed");
    html += "<ul>\n";
    for (const std::string& formula : bound_formulas()) {
      html += fmt::format("<li>{}</li>\n", html_escaped(formula));
    }
    html += "</ul>\n";
    html += paragraph(
        fmt::format("Passes of the model, measured behind {} tokens:", comparison.pass_context));
    html += pass_table(*comparison.passes);
  }
  const std::vector<std::string> problems = comparison_problems(comparison);
  if (!problems.empty()) {
    html += heading(2, "Problems");
    html += "<ul>\n";
    for (const std::string& problem : problems) {
      html += fmt::format("<li>{}</li>\n", html_escaped(problem));
    }
    html += "</ul>\n";
  }
  return html + "</body>\n</html>\n";
}

}  // namespace outrider
