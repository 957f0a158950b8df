// SPDX-License-Identifier: Apache-2.0
#include "apps/trainer/head_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>
#include <memory>
#include <utility>

#include "apps/cli/flag_values.h"
#include "apps/cli/help_format.h"
#include "apps/cli/warnings.h"
#include "outrider/error.h"
#include "outrider/tokenizer.h"
#include "train/batches/generated_source.h"

namespace outrider::cli {
namespace {

// A prediction needs the position that it is read from, the token after it and its own token.
constexpr int kShortest = 3;

// Batches from text files or from a file of examples; null without either.
std::shared_ptr<train::BatchSource> batches_of(const std::vector<std::string>& files,
                                               const std::string& examples, const HeadFlags& flags,
                                               const Tokenizer& tokenizer,
                                               const std::shared_ptr<train::Teacher>& target,
                                               const train::BatchShape& shape) {
  if (!examples.empty()) return example_batches(examples, tokenizer, shape);
  auto text = text_batches(files, flags.text, tokenizer, shape);
  if (text == nullptr || flags.data == "fixed") return text;
  return std::make_shared<train::GeneratedSource>(
      std::move(text), target,
      train::GenerationOptions{
          .n_prefix = flags.prompt, .temperature = flags.temperature, .seed = shape.seed});
}

void require_one_kind_of_data(const HeadFlags& flags) {
  constexpr const char* kOperation = "read flags";
  if (flags.text.text.empty() == flags.examples.empty()) {
    throw UsageError(kOperation, "data", "either --text or --examples",
                     flags.examples.empty() ? "neither" : "both");
  }
  if (!flags.text.held_out.empty() && !flags.held_out_examples.empty()) {
    throw UsageError(kOperation, "data", "either --held-out or --held-out-examples", "both");
  }
  const bool has_examples = !flags.examples.empty() || !flags.held_out_examples.empty();
  if (has_examples && flags.data != "fixed") {
    throw UsageError(kOperation, "data", "fixed with examples", flags.data);
  }
}

}  // namespace

void add_head_flags(CLI::App& command, HeadFlags& flags) {
  constexpr const char* kData = "Data";
  add_path(command, "--target", flags.target, "PATH",
           "The model to draft for, which stays as it is. A Hugging Face directory or a .gguf file")
      ->required()
      ->group(kData);
  add_text_flags(command, flags.text, "");
  add_example_flags(command, flags.examples, flags.held_out_examples);
  add_choice(command, "--data", flags.data, {"fixed", "generated"},
             "The text as it stands, or what the target writes (default: fixed). With generated it "
             "goes on from the text's beginnings")
      ->group(kData);
  add_real(command, "--temperature", flags.temperature,
           {0, true, std::numeric_limits<double>::infinity(), false, "a number, 0 or more"},
           "That the target writes at; 0: the most probable token each time (default: 0)")
      ->group(kData);
  add_integer(command, "--prompt", flags.prompt, 1,
              fmt::format("Tokens of such a beginning (default: {})", flags.prompt))
      ->group(kData);
  add_run_flags(command, flags.run);
  show_usual(command, {"--target", "--text", "--held-out", "--examples", "--data"});
}

train::HeadRun head_run_of(const HeadFlags& flags) {
  constexpr const char* kOperation = "read flags";
  require_one_kind_of_data(flags);
  require_apart(flags.run, flags.target);
  const int n_threads = set_up_training(flags.run);
  const auto tokenizer = load_tokenizer(flags.target);
  train::HeadRun run;
  run.target = std::make_shared<train::Teacher>(flags.target, n_threads);
  const ModelConfig& config = run.target->config();
  if (tokenizer->vocabulary_size() > config.vocabulary_size) {
    throw Error("read tokenizer", flags.target,
                fmt::format("at most the model's {} tokens", config.vocabulary_size),
                fmt::format("{}", tokenizer->vocabulary_size()));
  }
  if (flags.run.length < kShortest || flags.run.length > config.context_length) {
    throw UsageError(
        kOperation, "length",
        fmt::format("{} to {} tokens, the target's context", kShortest, config.context_length),
        fmt::format("{}", flags.run.length));
  }
  if (flags.data == "generated" && flags.prompt >= flags.run.length) {
    throw UsageError(kOperation, "prompt", fmt::format("below the length of {}", flags.run.length),
                     fmt::format("{}", flags.prompt));
  }
  run.products = products_of(flags.run);
  run.seed = flags.run.seed;
  run.export_type = export_type_of(flags.run);
  run.batches = batches_of(flags.text.text, flags.examples, flags, *tokenizer, run.target,
                           batch_shape(flags.run));
  train::BatchShape held_out = batch_shape(flags.run);
  held_out.seed = 0;  // the same windows in every run
  run.held_out = batches_of(flags.text.held_out, flags.held_out_examples, flags, *tokenizer,
                            run.target, held_out);
  return run;
}

train::RunSettings settings_of(const HeadFlags& flags, const train::HeadRun& run) {
  train::RunSettings settings = {{"target", flags.target},
                                 {"text", fmt::format("{}", fmt::join(flags.text.text, " "))},
                                 {"separator", flags.text.separator},
                                 {"tokens", tokens_of(*run.batches)},
                                 {"data", flags.data},
                                 {"temperature", fmt::format("{}", flags.temperature)},
                                 {"prompt", fmt::format("{}", flags.prompt)}};
  // Runs begun before this option existed can be resumed.
  if (!flags.examples.empty()) settings.emplace_back("examples", flags.examples);
  return settings;
}

int run_head(train::Objective& objective, const HeadFlags& flags, const train::HeadRun& run,
             train::RunSettings settings, int n_features) {
  constexpr int kBytes = 2;  // of a number in bf16, the type in which programs store features
  const std::int64_t n_bytes =
      run.batches->n_tokens() * n_features * run.target->config().dim * kBytes;
  std::string summary = fmt::format(
      "{} parameters, {} tokens of text, a target of {} parameters\nits features at "
      "{} layer{} are computed as they are needed; stored they would take {:.3g} GB",
      train::n_trained_parameters(objective), run.batches->n_tokens(),
      run.target->model().footprint().n_parameters, n_features, n_features == 1 ? "" : "s",
      static_cast<double>(n_bytes) / 1e9);
  return run_with_progress(objective, flags.run, std::move(settings), std::move(summary));
}

}  // namespace outrider::cli
