// SPDX-License-Identifier: Apache-2.0
#include "apps/tune/tune_screen.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "apps/bench/bench_text.h"
#include "apps/cli/help_format.h"
#include "apps/cli/terminal.h"
#include "outrider/method_report.h"

namespace outrider::cli {
namespace {

constexpr std::size_t kScreenWidth = 80;
constexpr const char* kUnknownFigure = "-";

std::string shown_figure(double value) {
  return std::isfinite(value) ? fmt::format("{:.2f}", value) : kUnknownFigure;
}

// "1.32 (1.10-1.60)".
std::string shown_speedup(const Estimate& speedup) {
  if (!std::isfinite(speedup.low) || !std::isfinite(speedup.high)) {
    return shown_figure(speedup.value);
  }
  return fmt::format("{:.2f} ({:.2f}-{:.2f})", speedup.value, speedup.low, speedup.high);
}

std::string shown_share(double share) {
  constexpr double kPercent = 100;
  return std::isfinite(share) ? fmt::format("{:.0f}%", share * kPercent) : kUnknownFigure;
}

// "model:/a/b/c.gguf,length=3" -> "model:c.gguf,length=3".
std::string without_folder(const std::string& drafter) {
  const std::size_t colon = drafter.find(':');
  const std::size_t slash = drafter.rfind('/');
  if (colon == std::string::npos || slash == std::string::npos || slash < colon ||
      slash + 1 == drafter.size()) {
    return drafter;
  }
  return drafter.substr(0, colon + 1) + drafter.substr(slash + 1);
}

// Display names of drafters: without folders if they remain distinct.
std::map<std::string, std::string> names_of(const std::vector<TunedMethod>& methods) {
  std::map<std::string, std::string> names;
  std::set<std::string> different;
  for (const TunedMethod& method : methods) {
    names[method.drafter] = one_line(without_folder(method.drafter));
  }
  for (const auto& [drafter, name] : names) different.insert(name);
  if (different.size() == names.size()) return names;
  for (auto& [drafter, name] : names) name = one_line(drafter);
  return names;
}

// Costs of a few widths, relative to a pass of one row.
std::string costs_line(const MethodComparison& comparison) {
  if (!comparison.passes) return {};
  constexpr int kShownRows[] = {1, 2, 4, 8, 16, 32};
  std::string rows = "rows of a pass  ";
  std::string costs = "cost            ";
  for (const PassCost& pass : comparison.passes->passes) {
    if (std::count(std::begin(kShownRows), std::end(kShownRows), pass.rows) == 0) continue;
    rows += fmt::format("{:>6}", pass.rows);
    costs += fmt::format("{:>6.2f}", pass.ratio);
  }
  return fmt::format("{}\n{}   one row: {}\n", rows, costs,
                     show_duration(comparison.passes->passes.front().seconds.median));
}

// A method with its figures at each temperature.
struct ScreenRow {
  std::string name;
  std::vector<std::string> speedups;
  std::vector<std::string> taus;
  std::vector<std::string> shares;
};

std::vector<ScreenRow> rows_of(const std::vector<TunedMethod>& methods,
                               const std::vector<double>& temperatures) {
  const std::map<std::string, std::string> names = names_of(methods);
  // Drafter and tree, in order of appearance.
  std::vector<std::pair<std::string, std::string>> keys;
  for (const TunedMethod& method : methods) {
    const std::pair<std::string, std::string> key(method.drafter, method.tree);
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
  }
  std::vector<ScreenRow> rows;
  for (const auto& [drafter, tree] : keys) {
    ScreenRow row;
    row.name = tree.empty() ? names.at(drafter) : "  " + one_line(tree);
    for (const double temperature : temperatures) {
      const auto at = std::find_if(
          methods.begin(), methods.end(), [&, of = drafter, as = tree](const TunedMethod& one) {
            return one.drafter == of && one.tree == as && one.temperature == temperature;
          });
      const bool is_there = at != methods.end();
      row.speedups.push_back(is_there ? shown_speedup(at->over_plain) : kUnknownFigure);
      row.taus.push_back(is_there ? shown_figure(at->tau) : kUnknownFigure);
      row.shares.push_back(is_there ? shown_share(at->accepted_share) : kUnknownFigure);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string methods_table(const Tuning& tuning, const std::vector<TunedMethod>& methods) {
  const std::vector<double>& temperatures = tuning.drafters.options.temperatures;
  std::vector<ScreenRow> rows = rows_of(methods, temperatures);
  // Fixed shapes come last in the list and belong to one drafter: they are shown below its name.
  std::string shaped;
  if (tuning.shapes) shaped = tuning.shapes->options.methods.back().speculation.drafter;
  std::size_t width = 8;
  for (const ScreenRow& row : rows) width = std::max(width, row.name.size());
  std::string head = fmt::format("{:<{}}", "speed-up", width);
  for (const double temperature : temperatures) {
    head += fmt::format("  {:<16}", fmt::format("temperature {}", temperature));
  }
  const std::size_t of_figures = 6 * temperatures.size() - 1;  // "1.45  1.02"
  std::string text = fmt::format("{}  {:<{}}  {}\n", head, "tokens a pass",
                                 std::max<std::size_t>(of_figures, 13), "accepted");
  bool names_shaped = false;
  for (const ScreenRow& row : rows) {
    if (row.name.starts_with("  ") && !names_shaped) {
      text += fmt::format("{} with drafts of a fixed shape:\n", one_line(without_folder(shaped)));
      names_shaped = true;
    }
    std::string line = fmt::format("{:<{}}", row.name, width);
    for (const std::string& speedup : row.speedups) line += fmt::format("  {:<16}", speedup);
    line += fmt::format("  {:<{}}  {}", fmt::format("{}", fmt::join(row.taus, "  ")),
                        std::max<std::size_t>(of_figures, 13), fmt::join(row.shares, "  "));
    text += line + "\n";
  }
  return text;
}

// The advice for one temperature, as a sentence.
std::string advice_of(const Tuning& tuning, const std::vector<TunedMethod>& methods,
                      double temperature) {
  const Advice advice = recommend(methods, temperature);
  if (advice.method >= methods.size()) return "nothing was measured";
  const TunedMethod& method = methods[advice.method];
  const std::string speedup = shown_speedup(method.over_plain);
  const std::string name =
      names_of(methods).at(method.drafter) +
      (method.tree.empty() ? std::string() : " --tree " + one_line(method.tree));
  switch (advice.finding) {
    case Finding::pays:
      if (method.tree.empty()) return fmt::format("{}  {}", one_line(flags_of(method)), speedup);
      return fmt::format("{}  {}, over its own depth {}", one_line(flags_of(method)), speedup,
                         shown_speedup(method.over_auto));
    case Finding::costs:
      return fmt::format("no drafter pays here: the best, {}, has {}", name, speedup);
    case Finding::not_certain:
      break;
  }
  std::string text = fmt::format("not certain that a drafter pays; the best, {}, has {} over {}",
                                 name, speedup, counted(method.n_prompts, "prompt"));
  const double seconds = tuning.seconds_for(method, advice.prompts_needed);
  if (std::isfinite(seconds)) {
    text += fmt::format(". About {} would tell: --seconds {:.0f}",
                        counted(advice.prompts_needed, "prompt"), std::ceil(seconds));
  } else if (advice.prompts_needed > 0) {
    text += fmt::format(". About {} would tell (--prompts, --text)",
                        counted(advice.prompts_needed, "prompt"));
  }
  return text;
}

std::string measured_line(const Tuning& tuning, const std::vector<TunedMethod>& methods) {
  int n_prompts = 0;
  for (const TunedMethod& method : methods) n_prompts = std::max(n_prompts, method.n_prompts);
  const std::size_t n_rounds =
      tuning.drafters.rounds.size() + (tuning.shapes ? tuning.shapes->rounds.size() : 0);
  return fmt::format("Measured in {:.0f} s: {}, {}. In brackets: 95% intervals over prompts.\n",
                     tuning.seconds, counted(n_prompts, "prompt"),
                     counted(static_cast<std::int64_t>(n_rounds), "round"));
}

}  // namespace

std::string tune_screen(const Model& model, const Tuning& tuning) {
  const MethodComparison& comparison = tuning.drafters;
  const MachineDescription machine = describe_machine();
  const std::vector<TunedMethod> methods = tuning.methods();
  std::string text = without_controls(describe_line(model, comparison.pass_context));
  text += fmt::format("{}, {}\n\n",
                      machine.processor.empty() ? "unknown processor" : one_line(machine.processor),
                      counted(machine.n_processors, "processor"));
  text += costs_line(comparison);
  if (methods.empty()) return text;
  text += "\n" + methods_table(tuning, methods) + "\n" + measured_line(tuning, methods);
  for (const double temperature : comparison.options.temperatures) {
    const std::string begin = fmt::format("temperature {}: ", temperature);
    text += begin +
            wrap_words(advice_of(tuning, methods, temperature), begin.size(), kScreenWidth) + "\n";
  }
  for (const std::string& problem : tuning.problems()) {
    text += "problem: " + one_line(problem) + "\n";
  }
  if (tuning.profile_written) {
    text += "What was learnt is kept: generate, chat and serve begin with it.\n";
  }
  return text;
}

}  // namespace outrider::cli
