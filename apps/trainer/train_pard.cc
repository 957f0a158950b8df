// SPDX-License-Identifier: Apache-2.0
// outrider train pard: a small model that learns to draft several tokens in one pass.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <string>
#include <utility>

#include "apps/cli/flag_values.h"
#include "apps/cli/help_format.h"
#include "apps/cli/warnings.h"
#include "apps/trainer/mask_row_flags.h"
#include "apps/trainer/run_flags.h"
#include "apps/trainer/train_commands.h"
#include "model/config.h"
#include "outrider/error.h"
#include "outrider/tokenizer.h"
#include "train/modules/llama_config.h"
#include "train/objectives/pard.h"

namespace outrider::cli {
namespace {

struct PardFlags {
  RunFlags run;
  TextFlags text;
  std::string examples;
  std::string held_out_examples;
  std::string drafter;
  int mask = -1;  // -1: pard_mask_of() chooses
  train::MaskChoice rows = {};
};

// The mask in the drafter's file, if it continues learning; otherwise its end token, which occurs
// once in a text, at its end.
TokenId pard_mask_of(const PardFlags& flags, const ModelConfig& drafter) {
  if (flags.mask >= 0) return flags.mask;
  if (drafter.mask_token) return *drafter.mask_token;
  if (!drafter.end_tokens.empty()) return drafter.end_tokens.front();
  throw UsageError("read flags", "mask-token",
                   "a token, as the drafter has neither a mask nor an end token", "none");
}

int run_pard(const PardFlags& flags) {
  if (flags.text.text.empty() == flags.examples.empty()) {
    throw UsageError("read flags", "data", "either --text or --examples",
                     flags.examples.empty() ? "neither" : "both");
  }
  if (!flags.text.held_out.empty() && !flags.held_out_examples.empty()) {
    throw UsageError("read flags", "data", "either --held-out or --held-out-examples", "both");
  }
  require_apart(flags.run, flags.drafter);
  set_up_training(flags.run);
  const ModelConfig config = train::read_llama_config(flags.drafter);
  if (flags.run.length > config.context_length) {
    throw UsageError("read flags", "length",
                     fmt::format("at most the context of {} tokens", config.context_length),
                     fmt::format("{}", flags.run.length));
  }
  if (flags.run.length <= flags.rows.n_drafted) {
    throw UsageError("read flags", "length",
                     fmt::format("more than a draft of {} tokens", flags.rows.n_drafted),
                     fmt::format("{}", flags.run.length));
  }
  const auto tokenizer = load_tokenizer(flags.drafter);
  const auto batches = [&](const std::vector<std::string>& text, const std::string& examples,
                           const train::BatchShape& shape) {
    return examples.empty() ? text_batches(text, flags.text, *tokenizer, shape)
                            : example_batches(examples, *tokenizer, shape);
  };
  train::BatchShape held_out = batch_shape(flags.run);
  held_out.seed = 0;  // the same windows in every run
  const train::PardOptions options = {
      .drafter = flags.drafter,
      .products = products_of(flags.run),
      .mask = pard_mask_of(flags, config),
      .rows = flags.rows,
      .batches = batches(flags.text.text, flags.examples, batch_shape(flags.run)),
      .held_out = batches(flags.text.held_out, flags.held_out_examples, held_out),
      .export_type = export_type_of(flags.run)};
  train::RunSettings settings = {{"command", "pard"},
                                 {"drafter", flags.drafter},
                                 {"text", fmt::format("{}", fmt::join(flags.text.text, " "))},
                                 {"examples", flags.examples},
                                 {"separator", flags.text.separator},
                                 {"tokens", tokens_of(*options.batches)},
                                 {"draft-tokens", fmt::format("{}", flags.rows.n_drafted)},
                                 {"mask-token", fmt::format("{}", options.mask)},
                                 {"keep", fmt::format("{}", flags.rows.keep)},
                                 {"least-share", fmt::format("{}", flags.rows.min_share)}};
  const auto objective = train::make_pard(options);
  std::string summary =
      fmt::format("{} parameters, {} tokens of text", train::n_trained_parameters(*objective),
                  options.batches->n_tokens());
  return run_with_progress(*objective, flags.run, std::move(settings), std::move(summary));
}

}  // namespace

CLI::App* add_train_pard(CLI::App& program, Run& run) {
  auto flags = std::make_shared<PardFlags>();
  flags->run.learning_rate = 3e-4;  // as in train online: the weights are trained already
  CLI::App* command = program.add_subcommand(
      "pard", "Train a small model to draft several tokens in one pass, behind mask tokens");
  add_path(*command, "--drafter", flags->drafter, "DIR",
           "The model to start from: a Hugging Face directory of the Llama family")
      ->required()
      ->group("Data");
  add_text_flags(*command, flags->text, "");
  add_example_flags(*command, flags->examples, flags->held_out_examples);
  constexpr const char* kDraft = "Draft";
  add_integer(
      *command, "--tokens", flags->rows.n_drafted, 2,
      fmt::format("Of a draft, one pass gives them all (default: {})", flags->rows.n_drafted))
      ->group(kDraft);
  add_integer(*command, "--mask-token", flags->mask, 0,
              "What the places behind the newest token read; it is never drafted (default: the "
              "drafter's pard_token, or else its end token)")
      ->group(kDraft);
  add_mask_row_flags(*command, flags->rows, "Rows that are learned from");
  add_run_flags(*command, flags->run);
  show_usual(*command, {"--drafter", "--text", "--held-out", "--examples", "--tokens"});
  command->footer(
      "Examples:\n"
      "  outrider train pard --drafter models/drafter --text novels.txt --mask-token 0 --steps "
      "1000 --out pard\n"
      "  outrider train pard --drafter small --examples answers.jsonl --out pard\n"
      "  outrider generate --model target --drafter pard:pard --prompt \"Once\"\n");
  run = [flags] { return run_pard(*flags); };
  return command;
}

}  // namespace outrider::cli
