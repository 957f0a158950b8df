// SPDX-License-Identifier: Apache-2.0
// A comparison of methods as tables for a terminal.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "measure/comparison/figure_text.h"
#include "outrider/method_report.h"

namespace outrider {
namespace {

// Places and lengths that fit into a terminal line.
constexpr std::size_t kMaxShown = 8;

// Rows of text, with columns as wide as their widest cell.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> names) { rows_.push_back(std::move(names)); }
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  // Adds a line with the method's name if it differs from `method`, which is then updated.
  void begin_group(std::size_t of, const std::vector<std::string>& labels, std::size_t& method) {
    if (of == method) return;
    rows_.push_back({labels[of]});
    method = of;
  }
  bool empty() const { return rows_.size() == 1; }

  std::string text() const {
    std::vector<std::size_t> widths;
    for (const auto& row : rows_) {
      widths.resize(std::max(widths.size(), row.size()));
      // A name alone may extend over the columns.
      for (std::size_t column = 0; column < row.size() && row.size() > 1; ++column) {
        widths[column] = std::max(widths[column], row[column].size());
      }
    }
    std::string text;
    for (const auto& row : rows_) {
      std::string line;
      for (std::size_t column = 0; column < row.size(); ++column) {
        if (column > 0) line += "  ";
        line += fmt::format("{:<{}}", row[column], widths[column]);
      }
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + "\n";
    }
    return text;
  }

 private:
  std::vector<std::vector<std::string>> rows_;
};

// Rows of a method are below its name. Plain decoding, the base, has one row for all prompts.
std::string gains(std::span<const MethodFigures> figures, const std::vector<std::string>& labels) {
  TextTable table({"category", "prompts", "speed-up", "tokens/s", "tau", "first token, of plain's",
                   "plain's text"});
  std::size_t method = figures.size();
  for (const MethodFigures& one : figures) {
    if (one.method == 0 && !one.category.empty()) continue;
    table.begin_group(one.method, labels, method);
    table.add({"  " + show_category(one.category), fmt::format("{}", one.n_prompts),
               show_estimate(one.speedup, 2), show_estimate(one.tokens_per_second, 1),
               show_estimate(one.tau, 2), show_estimate(one.first_token_ratio, 2),
               show_same_texts(one)});
  }
  return table.text();
}

std::string bounds(std::span<const MethodFigures> figures, const std::vector<std::string>& labels) {
  TextTable table({"category", "of oracle", "oracle length", "perfect drafter", "free drafting",
                   "a level, in passes"});
  std::size_t method = figures.size();
  for (const MethodFigures& one : figures) {
    if (!one.bounds) continue;
    const MethodBounds& bounds = *one.bounds;
    table.begin_group(one.method, labels, method);
    table.add({"  " + show_category(one.category), show_estimate(bounds.oracle_share, 2),
               show_estimate(bounds.oracle, 2),
               fmt::format("{}, {} long", show_estimate(bounds.perfect, 2),
                           show_length(bounds.perfect_length)),
               show_estimate(bounds.free, 2), show_estimate(bounds.level_cost, 3)});
  }
  return table.empty() ? std::string() : table.text();
}

std::string times(std::span<const MethodFigures> figures, const std::vector<std::string>& labels) {
  TextTable table({"method", "draft", "target passes", "verify", "rest"});
  for (const MethodFigures& one : figures) {
    if (!one.category.empty()) continue;
    table.add({labels[one.method], show_share(one.draft_share), show_share(one.target_share),
               show_share(one.verify_share), show_share(one.rest_share)});
  }
  return table.text();
}

std::string acceptance(std::span<const MethodFigures> figures,
                       const std::vector<std::string>& labels) {
  std::vector<std::string> names = {"method"};
  for (std::size_t place = 1; place <= kMaxShown; ++place) {
    names.push_back(fmt::format("{}", place));
  }
  TextTable table(std::move(names));
  std::string alphas;
  for (const MethodFigures& one : figures) {
    if (!one.category.empty() || one.places.empty()) continue;
    std::vector<std::string> cells = {labels[one.method]};
    for (std::size_t place = 0; place < std::min(one.places.size(), kMaxShown); ++place) {
      cells.push_back(show_estimate(one.places[place].acceptance, 2));
    }
    table.add(std::move(cells));
    if (one.has_alphas) {
      alphas += fmt::format("{}: place n + 1 is the head's n-alpha.\n", labels[one.method]);
    }
  }
  return table.empty() ? std::string() : table.text() + alphas;
}

std::string lengths(std::span<const MethodFigures> figures,
                    const std::vector<std::string>& labels) {
  constexpr double kPercent = 100;
  std::vector<std::string> names = {"method"};
  for (std::size_t length = 0; length < kMaxShown; ++length) {
    names.push_back(fmt::format("{}", length));
  }
  names.push_back(fmt::format("{}+", kMaxShown));
  TextTable table(std::move(names));
  for (const MethodFigures& one : figures) {
    if (!one.category.empty() || one.places.empty()) continue;
    std::vector<std::int64_t> counts(kMaxShown + 1, 0);
    std::int64_t n_rounds = 0;
    for (std::size_t length = 0; length < one.accepted_lengths.size(); ++length) {
      counts[std::min(length, kMaxShown)] += one.accepted_lengths[length];
      n_rounds += one.accepted_lengths[length];
    }
    std::vector<std::string> cells = {labels[one.method]};
    for (const std::int64_t n : counts) {
      const double share = static_cast<double>(n) / static_cast<double>(n_rounds);
      cells.push_back(fmt::format("{:.0f}%", share * kPercent));
    }
    table.add(std::move(cells));
  }
  return table.empty() ? std::string() : table.text();
}

}  // namespace

std::string comparison_text(const MethodComparison& comparison,
                            std::span<const MethodFigures> figures) {
  std::string text;
  for (const std::string& fact : comparison_facts(comparison)) text += fact + "\n";
  text += "In brackets: 95% intervals over prompts.\n";
  const std::vector<std::string> labels = method_labels(comparison.options);
  for (const double temperature : comparison.options.temperatures) {
    std::vector<MethodFigures> here;
    for (const MethodFigures& one : figures) {
      if (one.temperature == temperature) here.push_back(one);
    }
    if (here.empty()) continue;
    const auto add = [&](const std::string& title, const std::string& table) {
      if (!table.empty())
        text += fmt::format("\n{}, temperature {}\n{}", title, temperature, table);
    };
    add("What was gained, a method's worst category first", gains(here, labels));
    add("Bounds", bounds(here, labels));
    add("Where the time went", times(here, labels));
    add("Acceptance by place in the draft", acceptance(here, labels));
    add("Rounds by drafted tokens that stood", lengths(here, labels));
  }
  if (comparison.passes) {
    text += "\n";
    for (const std::string& formula : bound_formulas()) text += formula + "\n";
    TextTable table({"rows", "c(n)", "ms a pass", "from", "to"});
    constexpr double kMilli = 1e3;
    for (const PassCost& pass : comparison.passes->passes) {
      table.add({fmt::format("{}", pass.rows), show_value(pass.ratio, 2),
                 show_value(pass.seconds.median * kMilli, 2),
                 show_value(pass.seconds.min * kMilli, 2),
                 show_value(pass.seconds.max * kMilli, 2)});
    }
    text += fmt::format("Passes behind {} tokens:\n", comparison.pass_context) + table.text();
  }
  const std::vector<std::string> problems = comparison_problems(comparison);
  if (!problems.empty()) {
    text += fmt::format("\n{}:\n", counted(problems.size(), "problem"));
    for (const std::string& problem : problems) text += problem + "\n";
  }
  return text;
}

}  // namespace outrider
