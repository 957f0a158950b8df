// SPDX-License-Identifier: Apache-2.0
// outrider train lm: a language model from text, or from completions of prompts.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "apps/cli/flag_values.h"
#include "apps/cli/help_format.h"
#include "apps/cli/warnings.h"
#include "apps/trainer/run_flags.h"
#include "apps/trainer/shape_flags.h"
#include "apps/trainer/train_commands.h"
#include "outrider/error.h"
#include "outrider/tokenizer.h"
#include "train/objectives/lm.h"

namespace outrider::cli {
namespace {

struct LmFlags {
  RunFlags run;
  ShapeFlags shape;
  TextFlags text;
  std::string examples;
  std::string held_out_examples;
  std::string tokenizer;
  std::string init;
  double dropout = 0;
  int mtp = 0;
  double mtp_weight = 0.3;
};

// Batches from text files or from a file of examples; null without either.
std::shared_ptr<train::BatchSource> batches_of(const std::vector<std::string>& text,
                                               const std::string& examples, const LmFlags& flags,
                                               const Tokenizer& tokenizer,
                                               const train::BatchShape& shape) {
  return examples.empty() ? text_batches(text, flags.text, tokenizer, shape)
                          : example_batches(examples, tokenizer, shape);
}

int run_lm(const LmFlags& flags) {
  if (flags.text.text.empty() == flags.examples.empty()) {
    throw UsageError("read flags", "data", "either --text or --examples",
                     flags.examples.empty() ? "neither" : "both");
  }
  if (!flags.text.held_out.empty() && !flags.held_out_examples.empty()) {
    throw UsageError("read flags", "data", "either --held-out or --held-out-examples", "both");
  }
  set_up_training(flags.run);
  const auto tokenizer = load_tokenizer(flags.tokenizer);
  const ModelConfig config = config_of(flags.shape, *tokenizer);
  if (flags.run.length > config.context_length) {
    throw UsageError("read flags", "length",
                     fmt::format("at most the context of {} tokens", config.context_length),
                     fmt::format("{}", flags.run.length));
  }
  train::LmOptions options;
  options.config = config;
  options.products = products_of(flags.run);
  options.init = flags.init;
  options.dropout = flags.dropout;
  options.seed = flags.run.seed;
  options.batches =
      batches_of(flags.text.text, flags.examples, flags, *tokenizer, batch_shape(flags.run));
  train::BatchShape held_out = batch_shape(flags.run);
  held_out.seed = 0;  // the same windows in every run
  options.held_out =
      batches_of(flags.text.held_out, flags.held_out_examples, flags, *tokenizer, held_out);
  options.tokenizer = flags.tokenizer;
  options.export_type = export_type_of(flags.run);
  options.n_mtp_modules = flags.mtp;
  options.mtp_weight = flags.mtp_weight;

  train::RunSettings settings = settings_of(flags.shape);
  settings.insert(settings.begin(), {{"command", "lm"},
                                     {"text", fmt::format("{}", fmt::join(flags.text.text, " "))},
                                     {"examples", flags.examples},
                                     {"separator", flags.text.separator},
                                     {"tokens", tokens_of(*options.batches)},
                                     {"tokenizer", flags.tokenizer},
                                     {"init", flags.init},
                                     {"dropout", fmt::format("{}", flags.dropout)},
                                     {"mtp", fmt::format("{}", flags.mtp)},
                                     {"mtp-weight", fmt::format("{}", flags.mtp_weight)}});
  const auto objective = train::make_lm(options);
  std::string summary =
      fmt::format("{} parameters, {} tokens of text", train::n_trained_parameters(*objective),
                  options.batches->n_tokens());
  return run_with_progress(*objective, flags.run, std::move(settings), std::move(summary));
}

}  // namespace

CLI::App* add_train_lm(CLI::App& program, Run& run) {
  auto flags = std::make_shared<LmFlags>();
  CLI::App* command = program.add_subcommand(
      "lm",
      "Train a language model of the Llama family from text files, or from prompts and "
      "completions");
  add_text_flags(*command, flags->text, "");
  add_example_flags(*command, flags->examples, flags->held_out_examples);
  add_path(*command, "--tokenizer", flags->tokenizer, "PATH",
           "Whose vocabulary: a Hugging Face directory or a tokenizer.json. It is copied to --out")
      ->required()
      ->group("Data");
  add_shape_flags(*command, flags->shape);
  add_path(*command, "--init", flags->init, "DIR",
           "Start from the weights of this model instead of random ones. It has the same shape")
      ->group("Shape of the model");
  constexpr const char* kMtp = "Multi-token prediction";
  add_integer(*command, "--mtp", flags->mtp, 0,
              "Modules that predict tokens further on (default: 0). They stand behind the model "
              "and learn with it")
      ->group(kMtp);
  add_real(*command, "--mtp-weight", flags->mtp_weight,
           {0, true, std::numeric_limits<double>::infinity(), false, "a number, 0 or more"},
           "What their mean loss counts beside the model's (default: 0.3)")
      ->group(kMtp);
  add_run_flags(*command, flags->run);
  add_real(*command, "--dropout", flags->dropout, {0, true, 1, false, "a number in [0, 1)"},
           "Share of the embeddings and of what layers add that is left out, at random, while it "
           "learns: for texts that are read many times (default: 0)")
      ->group("Optimiser (AdamW)");
  show_usual(*command, {"--text", "--held-out", "--separator", "--examples", "--tokenizer",
                        "--init", "--mtp"});
  command->footer(
      "Examples:\n"
      "  outrider train lm --text stories.txt --separator \"<|endoftext|>\" --tokenizer "
      "stories260K "
      "--layers 2 --dim 64 --steps 2000 --out drafter\n"
      "  outrider train lm ... --mtp 1\n"
      "  outrider train lm ... --resume\n");
  run = [flags] { return run_lm(*flags); };
  return command;
}

}  // namespace outrider::cli
