// SPDX-License-Identifier: Apache-2.0
// outrider train eagle: a head that drafts on the target's features.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "apps/cli/flag_values.h"
#include "apps/cli/help_format.h"
#include "apps/trainer/head_flags.h"
#include "apps/trainer/mask_row_flags.h"
#include "apps/trainer/train_commands.h"
#include "outrider/error.h"
#include "outrider/tokenizer.h"
#include "train/losses/draft_vocabulary.h"
#include "train/objectives/eagle.h"
#include "train/objectives/eagle3.h"
#include "train/objectives/parallel_eagle.h"

namespace outrider::cli {
namespace {

struct EagleFlags {
  HeadFlags head;
  std::string version = "1";
  std::string inputs = "feature+shifted-token";
  double noise = 0.1;
  int steps_ahead = 7;
  int draft_vocabulary = 0;  // 0: the target's whole vocabulary
  bool parallel = false;
  int layers = 4;
  int mask = -1;  // -1: parallel_mask_of() chooses
  train::MaskChoice rows = {};
};

// Flags for just one kind of head.
constexpr const char* kParallelFlags[] = {"--layers", "--mask-token", "--keep", "--least-share"};

// The end-of-text token, as for block heads: no draft begins after it in use.
TokenId parallel_mask_of(const EagleFlags& flags, const ModelConfig& target) {
  if (flags.mask >= 0) return flags.mask;
  return target.end_tokens.empty() ? 0 : target.end_tokens.front();
}

// The most frequent tokens of the text; empty for all.
std::vector<TokenId> draft_vocabulary_of(const EagleFlags& flags, const ModelConfig& target) {
  if (flags.draft_vocabulary == 0) return {};
  if (flags.draft_vocabulary > target.vocabulary_size) {
    throw UsageError("read flags", "draft-vocabulary",
                     fmt::format("at most the target's {} tokens", target.vocabulary_size),
                     fmt::format("{}", flags.draft_vocabulary));
  }
  const auto tokenizer = Tokenizer::load(flags.head.target);
  const auto& files = flags.head.text.text;
  std::vector<TokenId> text;
  if (flags.head.examples.empty()) {
    text = train::encode_text_files(std::vector<std::filesystem::path>(files.begin(), files.end()),
                                    *tokenizer, flags.head.text.separator);
  } else {
    for (const train::Example& example : train::read_examples(flags.head.examples, *tokenizer)) {
      text.insert(text.end(), example.tokens.begin(), example.tokens.end());
    }
  }
  return train::most_frequent_tokens(text, flags.draft_vocabulary, target.vocabulary_size);
}

int run_eagle(const EagleFlags& flags) {
  const bool is_first = flags.version == "1";
  if (!is_first && flags.inputs != "feature+shifted-token") {
    throw UsageError("read flags", "inputs", "feature+shifted-token with --version 3",
                     flags.inputs);
  }
  if (is_first && flags.draft_vocabulary > 0) {
    throw UsageError("read flags", "draft-vocabulary", "--version 3 with it", "--version 1");
  }
  if (is_first && flags.parallel) {
    throw UsageError("read flags", "parallel", "--version 3 with it", "--version 1");
  }
  const train::HeadRun run = head_run_of(flags.head);
  train::RunSettings settings = settings_of(flags.head, run);
  settings.insert(settings.begin(), {{"command", "eagle"}, {"version", flags.version}});
  if (is_first) {
    settings.insert(settings.end(),
                    {{"inputs", flags.inputs}, {"noise", fmt::format("{}", flags.noise)}});
    const auto objective = train::make_eagle(
        {.run = run, .inputs = train::eagle_inputs_named(flags.inputs), .noise = flags.noise});
    return run_head(*objective, flags.head, run, std::move(settings), 1);
  }
  settings.insert(settings.end(),
                  {{"steps-ahead", fmt::format("{}", flags.steps_ahead)},
                   {"draft-vocabulary", fmt::format("{}", flags.draft_vocabulary)}});
  if (flags.parallel) {
    const train::ParallelEagleOptions options = {
        .run = run,
        .n_layers = flags.layers,
        .rows = {.n_drafted = flags.steps_ahead,
                 .keep = flags.rows.keep,
                 .min_share = flags.rows.min_share},
        .mask = parallel_mask_of(flags, run.target->config()),
        .draft_vocabulary = draft_vocabulary_of(flags, run.target->config())};
    settings.insert(settings.end(), {{"parallel", "yes"},
                                     {"layers", fmt::format("{}", flags.layers)},
                                     {"mask-token", fmt::format("{}", options.mask)},
                                     {"keep", fmt::format("{}", flags.rows.keep)},
                                     {"least-share", fmt::format("{}", flags.rows.min_share)}});
    const auto objective = train::make_parallel_eagle(options);
    return run_head(*objective, flags.head, run, std::move(settings), 3);
  }
  const auto objective =
      train::make_eagle3({.run = run,
                          .n_steps = flags.steps_ahead,
                          .draft_vocabulary = draft_vocabulary_of(flags, run.target->config())});
  return run_head(*objective, flags.head, run, std::move(settings), 3);
}

}  // namespace

CLI::App* add_train_eagle(CLI::App& program, Run& run) {
  auto flags = std::make_shared<EagleFlags>();
  // EAGLE's published recipe, for targets of billions of parameters.
  flags->head.run.learning_rate = 3e-5;
  flags->head.run.batch = 4;
  flags->head.run.weight_decay = 0.01;
  flags->head.run.clip_norm = 0;
  flags->head.run.clip_value = 0.5;
  CLI::App* command = program.add_subcommand(
      "eagle", "Train an EAGLE head: one decoder layer that drafts on the target's features");
  constexpr const char* kHead = "Head";
  add_choice(*command, "--version", flags->version, {"1", "3"},
             "1: EAGLE; 3: EAGLE-3 (default: 1). 1 learns the target's features; 3 reads three of "
             "them and learns on its own output")
      ->group(kHead);
  add_choice(*command, "--inputs", flags->inputs,
             {"feature+shifted-token", "feature+token", "token", "feature"},
             "Version 1: what the head reads (default: feature+shifted-token)")
      ->group(kHead);
  add_real(*command, "--noise", flags->noise,
           {0, true, std::numeric_limits<double>::infinity(), false, "a number, 0 or more"},
           "Version 1: noise on the features it reads is uniform up to this (default: 0.1)")
      ->group(kHead);
  add_integer(*command, "--steps-ahead", flags->steps_ahead, 1,
              "Version 3: tokens to learn ahead (default: 7). Times that the head runs on its own "
              "output, or tokens of a pass with --parallel")
      ->group(kHead);
  add_integer(
      *command, "--draft-vocabulary", flags->draft_vocabulary, 1,
      "Version 3: tokens that the head can say (default: all). They are the text's most frequent")
      ->group(kHead);
  constexpr const char* kParallel = "Parallel head (P-EAGLE)";
  command
      ->add_flag("--parallel", flags->parallel,
                 "Version 3: draft all tokens in one pass, behind mask tokens")
      ->group(kParallel);
  add_integer(*command, "--layers", flags->layers, 1,
              fmt::format("Decoder layers (default: {})", flags->layers))
      ->group(kParallel);
  add_integer(*command, "--mask-token", flags->mask, 0,
              "What the places behind the newest token read; it is never drafted (default: the "
              "target's end token)")
      ->group(kParallel);
  add_mask_row_flags(*command, flags->rows, kParallel);
  for (const char* const flag : kParallelFlags) command->get_option(flag)->needs("--parallel");
  add_head_flags(*command, flags->head);
  show_usual(*command,
             {"--version", "--steps-ahead", "--draft-vocabulary", "--parallel", "--layers"});
  command->footer(
      "The defaults are for targets of billions of parameters; a target of a few hundred thousand "
      "needs about --learning-rate 1e-3.\n"
      "Examples:\n"
      "  outrider train eagle --target stories260K --text stories.txt --separator "
      "\"<|endoftext|>\" --learning-rate 1e-3 --steps 2000 --out head\n"
      "  outrider train eagle ... --data generated --temperature 1\n"
      "  outrider train eagle --version 3 --target stories260K --text stories.txt "
      "--draft-vocabulary 256 --out head3\n"
      "  outrider train eagle --version 3 --parallel ... --layers 2 --out parallel\n");
  run = [flags] { return run_eagle(*flags); };
  return command;
}

}  // namespace outrider::cli
