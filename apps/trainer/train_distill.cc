// SPDX-License-Identifier: Apache-2.0
// outrider train distill: trains a drafter towards its target.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <string>
#include <utility>

#include "apps/cli/flag_values.h"
#include "apps/cli/help_format.h"
#include "apps/cli/warnings.h"
#include "apps/trainer/run_flags.h"
#include "apps/trainer/shape_flags.h"
#include "apps/trainer/train_commands.h"
#include "outrider/error.h"
#include "outrider/tokenizer.h"
#include "tokenizer/same_vocabulary.h"
#include "train/objectives/distill.h"

namespace outrider::cli {
namespace {

struct DistillFlags {
  RunFlags run;
  ShapeFlags shape;
  TextFlags text;
  std::string target;
  std::string tokenizer;
  std::string init;
  std::string divergence = "forward-kl";
  double on_policy = 0;
  int prompt = 16;
};

int run_distill(const DistillFlags& flags) {
  if (flags.text.text.empty()) throw UsageError("read flags", "text", "at least one file", "none");
  require_apart(flags.run, flags.target);
  const int n_threads = set_up_training(flags.run);
  const auto target_tokenizer = load_tokenizer(flags.target);
  const std::string tokenizer_path = flags.tokenizer.empty() ? flags.target : flags.tokenizer;
  const auto tokenizer =
      flags.tokenizer.empty() ? target_tokenizer : load_tokenizer(flags.tokenizer);
  require_same_vocabulary(*target_tokenizer, *tokenizer, "read tokenizer", tokenizer_path);

  train::DistillOptions options;
  options.target = std::make_shared<train::Teacher>(flags.target, n_threads);
  options.config = config_of(flags.shape, *tokenizer);
  // Some targets pad their matrices beyond the vocabulary; their drafter has the same rows.
  options.config.vocabulary_size = options.target->config().vocabulary_size;
  options.config.bos_token = options.target->config().bos_token;
  options.config.end_tokens = options.target->config().end_tokens;
  const int context =
      std::min(options.config.context_length, options.target->config().context_length);
  if (flags.run.length > context) {
    throw UsageError("read flags", "length",
                     fmt::format("at most the context of {} tokens", context),
                     fmt::format("{}", flags.run.length));
  }
  options.products = products_of(flags.run);
  options.init = flags.init;
  options.seed = flags.run.seed;
  options.divergence = divergence_of(flags.divergence);
  options.on_policy = flags.on_policy;
  options.n_prompt = flags.prompt;
  options.batches = text_batches(flags.text.text, flags.text, *tokenizer, batch_shape(flags.run));
  train::BatchShape held_out = batch_shape(flags.run);
  held_out.seed = 0;  // the same windows in every run
  options.held_out = text_batches(flags.text.held_out, flags.text, *tokenizer, held_out);
  options.tokenizer = tokenizer_path;
  options.export_type = export_type_of(flags.run);

  train::RunSettings settings = settings_of(flags.shape);
  settings.insert(settings.begin(), {{"command", "distill"},
                                     {"target", flags.target},
                                     {"text", fmt::format("{}", fmt::join(flags.text.text, " "))},
                                     {"separator", flags.text.separator},
                                     {"tokens", tokens_of(*options.batches)},
                                     {"tokenizer", tokenizer_path},
                                     {"init", flags.init},
                                     {"divergence", flags.divergence},
                                     {"on-policy", fmt::format("{}", flags.on_policy)},
                                     {"prompt", fmt::format("{}", flags.prompt)}});
  const auto objective = train::make_distill(options);
  std::string summary =
      fmt::format("{} parameters, {} tokens of text, a target of {} parameters",
                  train::n_trained_parameters(*objective), options.batches->n_tokens(),
                  options.target->model().footprint().n_parameters);
  return run_with_progress(*objective, flags.run, std::move(settings), std::move(summary));
}

}  // namespace

CLI::App* add_train_distill(CLI::App& program, Run& run) {
  auto flags = std::make_shared<DistillFlags>();
  CLI::App* command = program.add_subcommand(
      "distill", "Train a drafter on a target's probabilities, computed as they are needed");
  add_path(*command, "--target", flags->target, "PATH",
           "The model to draft for: a Hugging Face directory or a .gguf file")
      ->required()
      ->group("Data");
  add_text_flags(*command, flags->text, "");
  add_path(*command, "--tokenizer", flags->tokenizer, "PATH",
           "Copied to --out; must have the target's vocabulary (default: the target's own)")
      ->group("Data");
  constexpr const char* kDistillation = "Distillation";
  add_divergence(*command, flags->divergence, kDistillation);
  add_real(*command, "--on-policy", flags->on_policy, {0, true, 1, true, "a number from 0 to 1"},
           "Share of the batches that the drafter writes itself (default: 0). It goes on from "
           "prompts of the text")
      ->group(kDistillation);
  add_integer(*command, "--prompt", flags->prompt, 1, "Tokens of such a prompt (default: 16)")
      ->group(kDistillation);
  add_shape_flags(*command, flags->shape);
  add_path(*command, "--init", flags->init, "DIR",
           "Start from the weights of this model instead of random ones. It has the same shape")
      ->group("Shape of the model");
  add_run_flags(*command, flags->run);
  show_usual(*command,
             {"--target", "--text", "--held-out", "--divergence", "--on-policy", "--init"});
  command->footer(
      "Examples:\n"
      "  outrider train distill --target stories260K --text stories.txt --separator "
      "\"<|endoftext|>\" --layers 1 --dim 48 --steps 3000 --out drafter\n"
      "  outrider train distill ... --divergence tv --on-policy 0.5 --init drafter\n");
  run = [flags] { return run_distill(*flags); };
  return command;
}

}  // namespace outrider::cli
