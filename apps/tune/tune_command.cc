// SPDX-License-Identifier: Apache-2.0
#include "apps/tune/tune_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/bench/bench_progress.h"
#include "apps/cli/entry.h"
#include "apps/cli/flag_values.h"
#include "apps/cli/help_format.h"
#include "apps/cli/interrupt.h"
#include "apps/cli/output_place.h"
#include "apps/cli/state_line.h"
#include "apps/cli/terminal.h"
#include "apps/cli/version.h"
#include "apps/flags/model_flags.h"
#include "apps/flags/text_flags.h"
#include "apps/profile_file.h"
#include "apps/tune/tune_screen.h"
#include "outrider/error.h"
#include "outrider/spec_description.h"
#include "outrider/tune_drafters.h"

namespace outrider::cli {
namespace {

// Fewer and shorter than those of `tune layers`: each needs a pass over all texts.
constexpr int kLayerTrials = 32;

struct TuneDraftersFlags {
  ModelFlags model;
  std::vector<std::string> drafters;
  bool only_those = false;
  std::vector<std::string> prompt_files;
  ContinuedTexts texts = {.count = 8, .prompt_tokens = 64};
  bool layers = false;
  TuneOptions options;
  std::string json_file;
};

// The drafters that the user names.
std::vector<std::string> named_drafters(const TuneDraftersFlags& flags) {
  std::vector<std::string> drafters = flags.drafters;
  if (!flags.model.draft_path.empty()) {
    drafters.push_back("model:" + escape_spec_value(flags.model.draft_path));
  }
  return drafters;
}

// Runs before anything is loaded.
void check_tune_flags(const TuneDraftersFlags& flags) {
  if (flags.model.model.empty()) {
    throw UsageError("read flags", "tune", "--model PATH, or one of the commands tree, layers",
                     "neither (see outrider tune --help)");
  }
  if (!flags.prompt_files.empty() && !flags.texts.paths.empty()) {
    throw UsageError("read flags", "texts", "--prompts or --text", "both");
  }
  if (flags.layers && flags.texts.paths.empty()) {
    throw UsageError("read flags", "--layers", "texts to judge layers on (--text)", "none");
  }
  const std::vector<std::string> named = named_drafters(flags);
  if (flags.only_those && named.empty() && !flags.layers) {
    throw UsageError("read flags", "--only", "drafters (--drafter SPEC, --draft PATH)", "none");
  }
  TuneOptions options = flags.options;
  options.drafters = named.empty() ? std::vector<std::string>{"suffix"} : named;
  options.drafter_options = flags.model.options;
  check_tuning(options);
  std::vector<std::filesystem::path> read(flags.prompt_files.begin(), flags.prompt_files.end());
  read.insert(read.end(), flags.texts.paths.begin(), flags.texts.paths.end());
  add_files_of_model(flags.model.model, read);
  add_files_of_model(flags.model.draft_path, read);
  for (const std::string& file : {flags.json_file, flags.model.profile}) {
    if (!file.empty() && file != "none") require_not_read(file, read);
  }
}

std::vector<ComparedPrompt> tuned_prompts(const TuneDraftersFlags& flags, const Model& model) {
  if (!flags.texts.paths.empty()) return tuning_prompts(model, flags.texts);
  if (flags.prompt_files.empty()) return tuning_prompts(model);
  std::vector<PromptSet> sets;
  sets.reserve(flags.prompt_files.size());
  for (const std::string& file : flags.prompt_files) sets.push_back(read_prompt_set(file));
  return in_turn(join_prompt_sets(sets));
}

// Adds the target without the layers whose skipping drafts best; nothing if no such draft pays.
void add_layers(const TuneDraftersFlags& flags, const std::shared_ptr<const Model>& model,
                const Interrupt& interrupt, std::vector<std::string>& drafters) {
  if (!flags.layers || model->summary().n_layers < 2) return;
  BenchProgress progress(interrupt);
  LayerSearchOptions options;
  options.texts.paths = flags.texts.paths;
  options.texts.separator = flags.texts.separator;
  options.texts.count = flags.texts.count;
  options.texts.prompt_tokens = flags.texts.prompt_tokens;
  options.trials = kLayerTrials;
  options.seed = flags.options.seed;
  options.progress = [&progress](std::string_view step, double share) {
    progress.show(step, share);
  };
  const SkippedLayers best = search_layers(model, options).front();
  if (best.length > 0) drafters.push_back(best.drafter());
}

int run_tune(const TuneDraftersFlags& flags) {
  check_tune_flags(flags);
  Interrupt interrupt;
  const std::shared_ptr<const Model> model = load_model(flags.model, interrupt);
  const ProfileFile profile(flags.model, /*plans=*/true);
  TuneOptions options = flags.options;
  options.drafter_options = flags.model.options;
  options.version = kVersion;
  options.profile = profile.place();
  options.prompts = tuned_prompts(flags, *model);
  options.raw = !flags.texts.paths.empty();
  const std::vector<std::string> named = named_drafters(flags);
  if (!flags.only_those) options.drafters = drafters_to_try(*model);
  for (const std::string& drafter : named) {
    const auto at = std::find(options.drafters.begin(), options.drafters.end(), drafter);
    if (at == options.drafters.end()) options.drafters.push_back(drafter);
  }
  add_layers(flags, model, interrupt, options.drafters);
  if (options.drafters.empty()) {
    throw Error("tune drafters", "--layers", "layers that a draft pays without", "none");
  }
  options.cancel = interrupt.flag();
  Tuning tuning;
  {
    StateLine line;
    options.progress = [&line](std::string_view step, double share) {
      constexpr double kPercent = 100;
      line.show(fmt::format("{} {:3.0f}%  {}", bar_of(share), share * kPercent, one_line(step)));
    };
    tuning = tune_drafters(model, options);
  }
  for (const std::string& line : tuning.left_out) fail(kExitError, "left out " + line);
  Output output;
  output.write(tune_screen(*model, tuning));
  output.check();
  if (!tuning.profile_problem.empty() && !flags.model.profile.empty()) {
    fail(kExitError, tuning.profile_problem);
  }
  if (!flags.json_file.empty()) write_report(flags.json_file, tuning_json(tuning));
  if (tuning.cancelled) return fail(kExitInterrupted, "interrupted; this is what there is");
  const bool lacks_named =
      std::any_of(named.begin(), named.end(), [&tuning](const std::string& drafter) {
        return std::any_of(tuning.left_out.begin(), tuning.left_out.end(),
                           [&drafter](const auto& one) { return one.starts_with(drafter + ": "); });
      });
  return lacks_named || !tuning.problems().empty() ? kExitError : 0;
}

}  // namespace

void add_tune_drafters(CLI::App& tune, Run& run_command) {
  const auto flags = std::make_shared<TuneDraftersFlags>();
  add_loading_flags(tune, flags->model);
  add_device_flag(tune, flags->model);
  tune.get_option("--model")->required(false);  // the commands have their own

  constexpr const char* kTried = "What is tried";
  add_filled_texts(tune, "--drafter", flags->drafters, "SPEC", "a drafter (model:PATH, ...)",
                   "A drafter to try; may be given several times. Those that any model has "
                   "(suffix, ngram, lookahead) and heads in its folder are tried anyway")
      ->allow_extra_args(false)
      ->group(kTried);
  add_path(tune, "--draft", flags->model.draft_path, "PATH", "Short for --drafter model:PATH")
      ->group(kTried);
  tune.add_flag("--only", flags->only_those, "Try the named drafters alone")->group(kTried);
  tune.add_flag("--layers", flags->layers,
                "Also the model without some layers, chosen on --text (slow)")
      ->group(kTried);

  constexpr const char* kOn = "On what";
  add_filled_texts(tune, "--prompts", flags->prompt_files, "FILE", "a file of prompts",
                   "Prompts as bench --methods has them (default: eight built in)")
      ->allow_extra_args(false)
      ->group(kOn);
  add_text_paths(tune, flags->texts.paths, kOn);
  tune.get_option("--text")->required(false)->description(
      "Texts whose beginnings are continued: files and folders");
  add_reals(tune, "--temperatures", flags->options.temperatures,
            {.min = 0,
             .min_included = true,
             .max = kInfinity,
             .max_included = false,
             .words = "numbers, 0 or more"},
            "Temperatures to measure at (default: 0,1)")
      ->group(kOn);
  add_integer(tune, "-n,--max-tokens", flags->options.max_tokens, 2,
              "Tokens of an answer at most (default: 64)")
      ->group(kOn);
  add_seed(tune, "--seed", flags->options.seed, "Of the answers (default: 0)")->group(kOn);

  constexpr const char* kEnd = "How long, and where to";
  add_real(tune, "--seconds", flags->options.seconds,
           {.min = 0,
            .min_included = false,
            .max = kInfinity,
            .max_included = false,
            .words = "a number above 0"},
           "How long to measure; two prompts at least (default: 120)")
      ->group(kEnd);
  add_profile_place(tune, flags->model,
                    "Where to keep what is learnt (default: in ~/.cache/outrider). For generate, "
                    "chat and serve, in a file of the model's; none: nowhere")
      ->group(kEnd);
  add_path(tune, "--json", flags->json_file, "FILE", "Also write all figures as JSON")->group(kEnd);
  show_usual(tune, {"--drafter", "--draft", "--only", "--layers", "--prompts", "--text",
                    "--temperatures", "--max-tokens", "--seconds", "--profile", "--json"});
  run_command = [flags] { return run_tune(*flags); };
}

}  // namespace outrider::cli
