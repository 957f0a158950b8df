// SPDX-License-Identifier: Apache-2.0
#include "apps/bench/bench_methods.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "apps/bench/bench_progress.h"
#include "apps/cli/entry.h"
#include "apps/cli/flag_values.h"
#include "apps/cli/interrupt.h"
#include "apps/cli/output_place.h"
#include "apps/cli/terminal.h"
#include "apps/cli/version.h"
#include "apps/commands.h"
#include "outrider/error.h"
#include "outrider/method_report.h"

namespace outrider::cli {
namespace {

namespace fs = std::filesystem;

// Appended to the name of --json's file: the file that keeps rounds as they are measured.
constexpr const char* kRoundsSuffix = ".rounds.jsonl";

std::vector<ComparedMethod> methods_of(const ModelFlags& model_flags, const MethodsFlags& flags) {
  std::vector<ComparedMethod> methods;
  for (const std::string& list : flags.lists) {
    for (ComparedMethod& method : read_methods(list, model_flags.options)) {
      const auto same = [&method](const auto& other) { return other.name == method.name; };
      const bool is_known = std::any_of(methods.begin(), methods.end(), same);
      if (is_known && method.name != "plain") {
        throw UsageError("read flags", "--methods", "each method once", method.name + " twice");
      }
      if (!is_known) methods.push_back(std::move(method));
    }
  }
  return methods;
}

std::vector<ComparedPrompt> prompts_of(const MethodsFlags& flags) {
  if (flags.prompt_files.empty()) {
    throw UsageError("read flags", "--prompts", "a file of prompts", "none");
  }
  std::vector<PromptSet> sets;
  sets.reserve(flags.prompt_files.size());
  for (const std::string& file : flags.prompt_files) sets.push_back(read_prompt_set(file));
  std::vector<ComparedPrompt> prompts = join_prompt_sets(sets);
  if (flags.limit == 0) return prompts;
  return spread_over_categories(prompts, static_cast<std::size_t>(flags.limit));
}

// Refuses a report that would overwrite an input of the comparison.
void require_places(const ModelFlags& model_flags, const MethodsFlags& flags,
                    const MethodsRun& run) {
  std::vector<fs::path> read(flags.prompt_files.begin(), flags.prompt_files.end());
  add_files_of_model(model_flags.model, read);
  std::set<std::string> places;
  for (const std::string& file : {run.json_file, flags.csv_file, flags.html_file}) {
    if (file.empty()) continue;
    require_not_read(file, read);
    if (!places.insert(file).second) {
      throw UsageError("read flags", file, "a file of its own for each report", "two in one");
    }
  }
}

// Measures passes for the bounds; `comparison` gets the context length used.
PassCosts measure_bounds(const Model& model, MethodComparison& comparison,
                         BenchProgress& progress) {
  const int room = model.summary().context_length;
  const std::vector<int> all_rows = bound_rows();
  PassOptions options;
  options.read_bytes = 1;  // the minimum: the bounds do not need the memory's speed
  options.context =
      std::max(0, std::min(typical_context(model, comparison.options), room - all_rows.back()));
  options.rows.clear();
  for (const int rows : all_rows) {
    if (rows <= room - options.context) options.rows.push_back(rows);
  }
  options.progress = [&progress](std::string_view step, double share) {
    progress.show(fmt::format("what passes cost, {}", step), share);
  };
  comparison.pass_context = options.context;
  return measure_passes(model, options);
}

// Measures the rounds that the comparison lacks; Ctrl-C stops between rounds.
void measure_rounds(const std::shared_ptr<const Model>& model, MethodComparison& comparison,
                    ComparisonFile* file, Interrupt& interrupt) {
  BenchProgress progress(interrupt);
  if (!comparison.passes) {
    PassCosts passes = measure_bounds(*model, comparison, progress);
    if (file != nullptr) file->append_passes(passes, comparison.pass_context);
    comparison.passes = std::move(passes);
  }
  std::set<std::tuple<std::size_t, double, int>> known;
  for (const ComparedRound& round : comparison.rounds) {
    known.emplace(round.prompt, round.temperature, round.repeat);
  }
  CompareOptions options = comparison.options;
  options.is_known = [&known](std::size_t prompt, double temperature, int repeat) {
    return known.contains({prompt, temperature, repeat});
  };
  options.on_round = [&](const ComparedRound& round) {
    if (file != nullptr) file->append(round);
    comparison.rounds.push_back(round);
  };
  options.cancel = interrupt.flag();
  options.progress = [&progress](std::string_view step, double share) {
    progress.show(step, share);
  };
  for (ComparedMethod& method : options.methods) {
    method.speculation.drafter_options.progress = [&progress](double) {
      progress.show("loading drafter", 0);
    };
  }
  compare_methods(model, options);
}

void write_reports(const MethodComparison& comparison, const MethodsFlags& flags,
                   const MethodsRun& run) {
  const std::vector<MethodFigures> figures = method_figures(comparison);
  if (!run.json_file.empty()) {
    write_report(run.json_file, comparison_json(comparison, figures));
  }
  if (!flags.csv_file.empty()) write_report(flags.csv_file, comparison_csv(comparison, figures));
  if (!flags.html_file.empty()) {
    write_report(flags.html_file, comparison_html(comparison, figures));
  }
  Output output;
  output.write(run.json && run.json_file.empty() ? comparison_json(comparison, figures)
                                                 : comparison_text(comparison, figures));
  output.check();
}

}  // namespace

void add_methods_flags(CLI::App& app, MethodsFlags& flags) {
  constexpr const char* kGroup = "What drafters gain on prompts";
  flags.chosen =
      add_filled_texts(
          app, "--methods", flags.lists, "METHOD,...", "plain or drafters (model:PATH, ...)",
          "Time drafters beside plain decoding: plain or DRAFTER[@TREE[@VERIFY]]. TREE is auto "
          "(default: the drafter's own, as deep as pays) or a shape of outrider trees; a backslash "
          "takes a comma or an @ literally, as in first:suffix\\,model:PATH")
          ->allow_extra_args(false)
          ->group(kGroup);
  add_filled_texts(
      app, "--prompts", flags.prompt_files, "FILE", "a file of prompts",
      "Prompts, as Spec-Bench has them; several times for several sets. A JSON object a line with "
      "\"turns\" and \"category\", as MT-bench and SPEED-Bench have them, too")
      ->allow_extra_args(false)
      ->group(kGroup);
  add_reals(app, "--temperatures", flags.temperatures,
            {.min = 0,
             .min_included = true,
             .max = kInfinity,
             .max_included = false,
             .words = "numbers, 0 or more"},
            "Temperatures to measure at (default: 0)")
      ->group(kGroup);
  add_integer(app, "--limit", flags.limit, 1,
              "Prompts at most, evenly spread over categories (default: all)")
      ->group(kGroup);
  app.add_flag("--raw", flags.raw,
               "Prompts are texts to go on with (default: conversations by the model's chat "
               "template, where it has one)")
      ->group(kGroup);
  add_path(app, "--csv", flags.csv_file, "FILE",
           "Also write the figures as CSV: a row for each method, category and temperature")
      ->group(kGroup);
  add_path(app, "--html", flags.html_file, "FILE",
           "Also write a page with pictures that needs no other file")
      ->group(kGroup);
}

int run_methods(const ModelFlags& model_flags, const MethodsFlags& flags, const MethodsRun& run) {
  CompareOptions options;
  options.methods = methods_of(model_flags, flags);
  require_places(model_flags, flags, run);
  options.prompts = prompts_of(flags);
  options.temperatures = flags.temperatures;
  options.max_tokens = run.max_tokens;
  options.repeats = run.repeats;
  options.seed = run.seed;
  options.raw = flags.raw;
  check_comparison(options);

  Interrupt interrupt;
  const std::shared_ptr<const Model> model = load_model(model_flags, interrupt);
  MethodComparison comparison = describe_comparison(*model, options, kVersion);
  std::optional<ComparisonFile> file;
  if (!run.json_file.empty()) file.emplace(run.json_file + kRoundsSuffix, comparison);
  try {
    measure_rounds(model, comparison, file ? &*file : nullptr, interrupt);
  } catch (const Interrupted&) {
    // The measurements so far still make a report.
  }
  if (interrupt.raised() && comparison.rounds.empty()) throw Interrupted();
  write_reports(comparison, flags, run);
  if (comparison.is_complete()) {
    const auto n_problems = static_cast<std::int64_t>(comparison_problems(comparison).size());
    if (n_problems == 0) return 0;
    return fail(kExitError, counted(n_problems, "problem") + "; the report names them");
  }
  return fail(kExitInterrupted, run.json_file.empty()
                                    ? "interrupted"
                                    : "interrupted; the same command goes on where this one was");
}

}  // namespace outrider::cli
