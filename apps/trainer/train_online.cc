// SPDX-License-Identifier: Apache-2.0
// outrider train online: a drafter that keeps learning from its target's verdicts.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "apps/cli/flag_values.h"
#include "apps/cli/help_format.h"
#include "apps/cli/state_line.h"
#include "apps/cli/terminal.h"
#include "apps/cli/warnings.h"
#include "apps/trainer/run_flags.h"
#include "apps/trainer/train_commands.h"
#include "model/config.h"
#include "outrider/error.h"
#include "outrider/tokenizer.h"
#include "tokenizer/same_vocabulary.h"
#include "train/modules/llama_config.h"
#include "train/objectives/online.h"

namespace outrider::cli {
namespace {

// A text takes seconds to write; polling twice a second costs nothing and feels immediate.
constexpr std::chrono::milliseconds kBetweenLooks{500};
constexpr int kFollowInterval = 50;

struct OnlineFlags {
  RunFlags run;
  std::string log;
  std::string drafter;
  std::string divergence = "forward-kl";
  double held_out_share = 0.05;
  bool follow = false;
};

int run_online(OnlineFlags flags) {
  set_up_training(flags.run);
  const ModelConfig config = train::read_llama_config(flags.drafter);
  if (flags.run.length > config.context_length) {
    throw UsageError("read flags", "length",
                     fmt::format("at most the context of {} tokens", config.context_length),
                     fmt::format("{}", flags.run.length));
  }
  const auto tokenizer = load_tokenizer(flags.drafter);
  const auto texts = std::make_shared<train::VerdictTexts>(
      flags.log,
      train::LearningDrafter{.path = flags.drafter,
                             .n_vocabulary = config.vocabulary_size,
                             .vocabulary = vocabulary_id(*tokenizer)},
      batch_shape(flags.run), flags.held_out_share);
  if (!texts->can_train() && !flags.follow) {
    throw Error("read verdict log", flags.log, "texts to learn from",
                texts->n_texts() == 0 ? "none" : "only held out ones");
  }
  if (flags.follow && flags.run.export_every == 0) flags.run.export_every = kFollowInterval;

  const auto objective = train::make_online({.drafter = flags.drafter,
                                             .products = products_of(flags.run),
                                             .divergence = divergence_of(flags.divergence),
                                             .texts = texts,
                                             .export_type = export_type_of(flags.run)});
  train::RunSettings settings = {{"command", "online"},
                                 {"log", flags.log},
                                 {"drafter", flags.drafter},
                                 {"divergence", flags.divergence},
                                 {"held-out-share", fmt::format("{}", flags.held_out_share)},
                                 {"follow", flags.follow ? "yes" : "no"}};
  // A log's contents change; only a run that follows it may continue with the changed log.
  if (!flags.follow) {
    settings.emplace_back("texts",
                          fmt::format("{} ({:016x})", texts->n_texts(), texts->fingerprint()));
  }
  std::string summary =
      fmt::format("{} parameters, {} judged tokens in {} texts",
                  train::n_trained_parameters(*objective), texts->n_judged(), texts->n_texts());
  if (!flags.follow) {
    return run_with_progress(*objective, flags.run, std::move(settings), std::move(summary));
  }
  // On a terminal the line below shows it, whenever there is something to wait for.
  if (!texts->can_train() && !is_terminal(STDERR_FILENO)) {
    fmt::print(stderr, "{}: waiting for texts\n", flags.log);
  }
  int n_steps = 0;
  return run_with_progress(*objective, flags.run, std::move(settings), std::move(summary),
                           [&](const std::function<bool()>& has_had_enough) {
                             // The texts do not change between two exports; then there must be new
                             // ones.
                             const bool is_due =
                                 n_steps > 0 && n_steps % flags.run.export_every == 0;
                             ++n_steps;
                             int n_new = is_due ? texts->refresh() : 1;
                             std::optional<StateLine> state;
                             while ((n_new == 0 || !texts->can_train()) && !has_had_enough()) {
                               if (!state) {
                                 state.emplace().show(fmt::format(
                                     "{}: {} so far, waiting for {} (Ctrl-C ends the run)",
                                     flags.log, counted(texts->n_texts(), "text"),
                                     texts->can_train() ? "new ones" : "some to learn from"));
                               }
                               std::this_thread::sleep_for(kBetweenLooks);
                               n_new += texts->refresh();
                             }
                           });
}

}  // namespace

CLI::App* add_train_online(CLI::App& program, Run& run) {
  auto flags = std::make_shared<OnlineFlags>();
  flags->run.learning_rate = 3e-4;
  CLI::App* command = program.add_subcommand(
      "online", "Train a drafter on what its target has said in use (--verdict-log)");
  constexpr const char* kData = "Data";
  add_path(*command, "--log", flags->log, "DIR",
           "A verdict log, as generate, chat and eval write it")
      ->required()
      ->group(kData);
  add_path(*command, "--drafter", flags->drafter, "DIR",
           "The drafter to start from. A Hugging Face directory with the log's vocabulary")
      ->required()
      ->group(kData);
  add_real(*command, "--held-out-share", flags->held_out_share,
           {0, true, 1, false, "a number from 0 up to 1"},
           fmt::format("Share of the texts that are not learned from but reported on (default: {})",
                       flags->held_out_share))
      ->group(kData);
  command
      ->add_flag("--follow", flags->follow,
                 fmt::format("Go on reading the log: every --export-every steps (default then: {}) "
                             "export, and wait until there are new texts",
                             kFollowInterval))
      ->group(kData);
  add_divergence(*command, flags->divergence, "Distillation");
  add_run_flags(*command, flags->run, "--held-out-share");
  show_usual(*command, {"--log", "--drafter", "--held-out-share", "--follow", "--divergence"});
  command->footer(
      "Examples:\n"
      "  outrider generate --model target --draft small --verdict-log verdicts --prompt \"...\"\n"
      "  outrider train online --log verdicts --drafter small --out tuned --steps 500\n"
      "  outrider chat --model target --drafter model:small,updates=tuned --verdict-log verdicts\n"
      "  outrider train online --log verdicts --drafter small --out tuned --follow\n");
  const CLI::Option* rate = command->get_option("--final-rate");
  run = [flags, rate] {
    // A run without an end cannot use a cosine schedule.
    if (flags->follow && rate->count() == 0) flags->run.final_rate = 1;
    return run_online(*flags);
  };
  return command;
}

}  // namespace outrider::cli
