// SPDX-License-Identifier: Apache-2.0
#include "apps/tune/tune_tree.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/bench/bench_progress.h"
#include "apps/bench/bench_text.h"
#include "apps/cli/flag_values.h"
#include "apps/cli/help_format.h"
#include "apps/cli/interrupt.h"
#include "apps/cli/output_place.h"
#include "apps/cli/terminal.h"
#include "apps/flags/model_flags.h"
#include "apps/flags/sampling_flags.h"
#include "apps/flags/text_flags.h"
#include "outrider/error.h"
#include "outrider/spec_description.h"
#include "outrider/tune.h"

namespace outrider::cli {
namespace {

constexpr int kShareCells = 32;

struct TuneTreeFlags {
  ModelFlags model;
  TreeProfileOptions options;
  std::string out;
  bool json = false;
};

// Budgets to show: 1, 2, 4, ... and the largest.
std::vector<int> budgets(int most) {
  std::vector<int> all;
  for (int budget = 1; budget < most; budget *= 2) all.push_back(budget);
  all.push_back(most);
  return all;
}

std::string to_json(const TreeProfile& profile, const std::string& file) {
  Json object;
  object["profile"] = file;
  object["target"] = profile.target;
  object["drafter"] = profile.drafter;
  object["temperature"] = profile.temperature;
  object["accept_by_rank"] = profile.accept_by_rank;
  object["n_nodes"] = profile.n_nodes;
  object["draft_seconds"] = profile.draft_seconds;
  object["level_seconds"] = profile.level_seconds;
  object["passes"] = Json::array();
  for (const TreeProfile::Pass& pass : profile.passes) {
    object["passes"].push_back({{"rows", pass.rows}, {"seconds", pass.seconds}});
  }
  object["plans"] = Json::array();
  for (const int budget : budgets(profile.passes.back().rows - 1)) {
    const PlannedDraft plan = plan_tree(profile, budget);
    object["plans"].push_back({{"budget", budget},
                               {"nodes", plan.n_nodes},
                               {"levels", plan.level_sizes},
                               {"tau", plan.tau},
                               {"speedup", plan.speedup()}});
  }
  return dump(object);
}

std::string to_table(const TreeProfile& profile, const std::string& file) {
  std::string text = fmt::format("{} drafts for {}, temperature {}; {} nodes' children judged\n\n",
                                 one_line(profile.drafter), one_line(profile.target),
                                 profile.temperature, profile.n_nodes);
  text += "child  stands\n";
  const double most =
      *std::max_element(profile.accept_by_rank.begin(), profile.accept_by_rank.end());
  for (std::size_t rank = 0; rank < profile.accept_by_rank.size(); ++rank) {
    const double share = profile.accept_by_rank[rank];
    const int filled = most > 0 ? static_cast<int>(std::lround(share / most * kShareCells)) : 0;
    text += fmt::format("{:>5}  {:.4f}  {:=<{}}\n", rank + 1, share, "", filled);
  }
  const TreeProfile::Pass& widest = profile.passes.back();
  text += fmt::format(
      "\na level of the draft {}, the rest of drafting {}; a pass of the target {}, over {} rows "
      "{}\n\n",
      show_duration(profile.level_seconds), show_duration(profile.draft_seconds),
      show_duration(profile.passes.front().seconds), widest.rows, show_duration(widest.seconds));
  text += "budget  nodes  expected: tokens a pass  speed-up  nodes of each level\n";
  for (const int budget : budgets(widest.rows - 1)) {
    const PlannedDraft plan = plan_tree(profile, budget);
    text += fmt::format(
        "{:>6}  {:>5}  {:>23.2f}  {:>7.2f}x  {}\n", budget, plan.n_nodes, plan.tau, plan.speedup(),
        plan.level_sizes.empty() ? "none: no draft pays"
                                 : fmt::to_string(fmt::join(plan.level_sizes, " ")));
  }
  return text +
         fmt::format("\nUse it as --tree sequoia:profile={}\n", one_line(escape_spec_value(file)));
}

int run(const TuneTreeFlags& flags) {
  TreeProfileOptions options = flags.options;
  SpeculationOptions speculation = speculation_of(flags.model);
  if (speculation.drafter == "none") {
    throw UsageError("read flags", "--drafter", "a drafter", "none");
  }
  check_speculation(speculation);
  // Checks the output file before the measurement.
  std::vector<std::filesystem::path> read = options.texts.paths;
  add_files_of_model(flags.model.model, read);
  add_files_of_model(flags.model.draft_path, read);
  require_not_read(flags.out, read);
  if (std::filesystem::is_directory(flags.out)) {
    throw Error("write file", flags.out, "a file's name", "a folder");
  }
  const std::filesystem::path folder = std::filesystem::path(flags.out).parent_path();
  if (!folder.empty() && !std::filesystem::is_directory(folder)) {
    throw Error("write file", flags.out, "a folder to write it in", "none");
  }

  Interrupt interrupt;
  const std::shared_ptr<const Model> model = load_model(flags.model, interrupt);
  TreeProfile profile;
  {
    BenchProgress progress(interrupt);
    options.progress = [&progress](std::string_view step, double share) {
      progress.show(step, share);
    };
    profile = measure_tree_profile(model, speculation, options);
  }
  interrupt.throw_if_raised();
  // Prints the figures first, in case the file cannot be written any more.
  Output output;
  output.write(flags.json ? to_json(profile, flags.out) : to_table(profile, flags.out));
  output.check();
  write_tree_profile(profile, flags.out);
  return 0;
}

}  // namespace

CLI::App* add_tune_tree(CLI::App& tune, Run& run_command) {
  CLI::App* app = tune.add_subcommand("tree", "Find the draft tree that pays most here");
  const auto flags = std::make_shared<TuneTreeFlags>();
  add_loading_flags(*app, flags->model);
  add_device_flag(*app, flags->model);
  add_drafter_flags(*app, flags->model);

  TreeProfileOptions& options = flags->options;
  add_continued_texts(*app, options.texts, 8);

  constexpr const char* kTrees = "Trees";
  add_integer(*app, "--budget", options.max_nodes, 1,
              "Nodes of a tree at most, up to 255 (default: 63)")
      ->group(kTrees);
  add_integer(*app, "--ranks", options.ranks, 1, "Children of a node, up to 63 (default: 8)")
      ->group(kTrees);
  add_choice(*app, "--siblings", options.siblings, {"without", "with", "top"},
             "How children of a node are drawn (default: without). Without or with replacement, or "
             "not drawn at all: the likeliest tokens")
      ->group(kTrees);
  add_path(*app, "--out", flags->out, "FILE", "Where the profile goes (required)")
      ->required()
      ->group(kTrees);
  app->add_flag("--json", flags->json, "The figures as one JSON object");
  show_usual(*app, {"--budget", "--ranks", "--siblings", "--out", "--json"});
  app->footer(
      "Examples:\n"
      "  outrider tune tree --model SmolLM2-1.7B --draft SmolLM2-135M --text notes.txt \\\n"
      "      --out tree.json\n"
      "  outrider tune tree --model SmolLM2-1.7B --drafter eagle:head --text chats \\\n"
      "      --temperature 0.8 --out warm.json\n"
      "  outrider generate --model SmolLM2-1.7B --draft SmolLM2-135M \\\n"
      "      --tree sequoia:profile=tree.json --prompt \"Once upon a time\"\n");
  run_command = [flags] { return run(*flags); };
  return app;
}

}  // namespace outrider::cli
