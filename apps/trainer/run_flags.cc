// SPDX-License-Identifier: Apache-2.0
#include "apps/trainer/run_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <limits>
#include <string>
#include <system_error>
#include <utility>

#include "apps/cli/flag_values.h"
#include "apps/cli/help_format.h"
#include "apps/cli/interrupt.h"
#include "apps/commands.h"
#include "apps/trainer/heap.h"
#include "apps/trainer/progress_line.h"
#include "outrider/error.h"
#include "train/device.h"

namespace outrider::cli {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// AdamW moves a weight by about the rate at each step, whatever its gradient. Above 10, the first
// step destroys weights of size 0.02, and squares overflow f32 soon after.
constexpr RealRange kRate{0, false, 10, true, "a number above 0 and up to 10"};
constexpr RealRange kNotNegative{0, true, kInfinity, false, "a number, 0 or more"};
constexpr RealRange kShare{0, true, 1, true, "a number from 0 to 1"};

}  // namespace

void add_run_flags(CLI::App& command, RunFlags& flags, const std::string& held_out_flag) {
  constexpr const char* kRun = "Run";
  const auto or_default = [](auto value) { return fmt::format("(default: {})", value); };
  add_path(command, "-o,--out", flags.out, "DIR",
           "Folder of the result. The run's own files stand in its folder training")
      ->required()
      ->group(kRun);
  command
      .add_flag("--resume", flags.resume,
                "Go on with the run in --out. The bits are those of a run that was never stopped")
      ->group(kRun);
  add_integer(command, "--steps", flags.steps, 1, "Optimiser steps " + or_default(flags.steps))
      ->group(kRun);
  add_integer(command, "--batch", flags.batch, 1, "Sequences a batch " + or_default(flags.batch))
      ->group(kRun);
  add_integer(command, "--length", flags.length, 2, "Tokens a sequence " + or_default(flags.length))
      ->group(kRun);
  add_integer(
      command, "--accumulate", flags.accumulation, 1,
      "Batches a step, for steps that do not fit into memory " + or_default(flags.accumulation))
      ->group(kRun);
  add_seed(command, "--seed", flags.seed, "Of weights, order and noise " + or_default(flags.seed))
      ->group(kRun);
  add_integer(command, "--checkpoint-every", flags.checkpoint_every, 1,
              "Steps between checkpoints " + or_default(flags.checkpoint_every))
      ->group(kRun);
  add_integer(command, "--evaluate-every", flags.evaluate_every, 0,
              fmt::format("Steps between evaluations on {}; 0: at the end {}", held_out_flag,
                          or_default(flags.evaluate_every)))
      ->group(kRun);
  add_integer(
      command, "--export-every", flags.export_every, 0,
      "Steps between exports of the result; 0: at the end " + or_default(flags.export_every))
      ->group(kRun);
  add_integer(command, "--threads", flags.threads, 0,
              "Threads; 0 takes every processor (default: 0)")
      ->group(kRun);
  add_choice(
      command, "--precision", flags.precision, {"auto", "bf16", "f32"},
      "Of the matrix products; auto takes bf16 on CUDA devices and processors with AVX512_BF16. "
      "Weights in training are always f32 " +
          or_default(flags.precision))
      ->group(kRun);
  add_choice(command, "--device", flags.device, {"auto", "cpu", "cuda"},
             "Where to train; auto takes a CUDA device if libtorch has one. A target runs on the "
             "processor in any case " +
                 or_default(flags.device))
      ->group(kRun);
  add_choice(command, "--export", flags.export_type, {"bf16", "f32"},
             "Type of the weights that are written " + or_default(flags.export_type))
      ->group(kRun);

  constexpr const char* kOptimiser = "Optimiser (AdamW)";
  add_real(command, "--learning-rate", flags.learning_rate, kRate,
           "At its peak " + or_default(flags.learning_rate))
      ->group(kOptimiser);
  add_real(command, "--final-rate", flags.final_rate, kShare,
           "Share of the peak at the last step of the cosine " + or_default(flags.final_rate))
      ->group(kOptimiser);
  add_integer(command, "--warmup", flags.warmup, 0,
              "Steps to the peak (default: a twentieth of --steps)")
      ->group(kOptimiser);
  add_real(command, "--weight-decay", flags.weight_decay, kNotNegative,
           "Of matrices " + or_default(flags.weight_decay))
      ->group(kOptimiser);
  add_real(command, "--clip-norm", flags.clip_norm, kNotNegative,
           "Largest norm of all gradients together; 0: any " + or_default(flags.clip_norm))
      ->group(kOptimiser);
  add_real(command, "--clip-value", flags.clip_value, kNotNegative,
           "Largest element of a gradient; 0: any " + or_default(flags.clip_value))
      ->group(kOptimiser);
  add_real(command, "--beta2", flags.beta2, kShare,
           "Memory of the squared gradients " + or_default(flags.beta2))
      ->group(kOptimiser);
  show_usual(command, {"--out", "--resume", "--steps", "--batch", "--length", "--evaluate-every",
                       "--threads", "--learning-rate"});
}

void add_text_flags(CLI::App& command, TextFlags& flags, const std::string& what) {
  constexpr const char* kData = "Data";
  add_filled_texts(command, "-t,--text", flags.text, "FILE ...", "a path",
                   "Text files to learn from" + what)
      ->group(kData);
  add_filled_texts(command, "--held-out", flags.held_out, "FILE ...", "a path",
                   "Text files to report the loss on")
      ->group(kData);
  add_filled_text(command, "--separator", flags.separator, "TEXT", "a text",
                  "What stands between the documents of a file (default: a file is one document)")
      ->group(kData);
}

void add_example_flags(CLI::App& command, std::string& examples, std::string& held_out) {
  constexpr const char* kData = "Data";
  add_path(
      command, "--examples", examples, "FILE",
      "Instead of text: prompts and completions, JSONL. A JSON object a line, {\"prompt\": ..., "
      "\"completion\": ...}, as outrider train answers writes them; the loss counts on completions")
      ->group(kData);
  add_path(command, "--held-out-examples", held_out, "FILE", "The same, to report the loss on")
      ->group(kData);
}

namespace {

constexpr std::pair<const char*, train::Divergence> kDivergences[] = {
    {"forward-kl", train::Divergence::forward_kl},
    {"reverse-kl", train::Divergence::reverse_kl},
    {"js", train::Divergence::jensen_shannon},
    {"tv", train::Divergence::total_variation}};

}  // namespace

void add_divergence(CLI::App& command, std::string& name, const std::string& group) {
  std::vector<std::string> names;
  for (const auto& known : kDivergences) names.emplace_back(known.first);
  add_choice(command, "--divergence", name, names,
             fmt::format("From the target's distribution to the drafter's (default: {})", name))
      ->group(group);
}

train::Divergence divergence_of(const std::string& name) {
  for (const auto& known : kDivergences) {
    if (name == known.first) return known.second;
  }
  return train::Divergence::forward_kl;  // the flag has no other values
}

train::BatchShape batch_shape(const RunFlags& flags) {
  return {.n_sequences = flags.batch, .length = flags.length, .seed = flags.seed};
}

namespace {

// The meaning of --precision, as stored in a run's settings.
std::string precision_of(const RunFlags& flags) {
  std::string precision = flags.precision;
  if (precision == "auto" && flags.resume) {
    // A run continues in its first precision, on any machine.
    precision = train::begun_setting(flags.out, "precision").value_or(precision);
  }
  if (precision != "auto") return precision;
  return train::quickest_products() == train::Products::bf16 ? "bf16" : "f32";
}

}  // namespace

train::Products products_of(const RunFlags& flags) {
  return precision_of(flags) == "bf16" ? train::Products::bf16 : train::Products::full;
}

ElementType export_type_of(const RunFlags& flags) {
  return flags.export_type == "bf16" ? ElementType::bf16 : ElementType::f32;
}

std::shared_ptr<train::BatchSource> text_batches(const std::vector<std::string>& files,
                                                 const TextFlags& flags, const Tokenizer& tokenizer,
                                                 const train::BatchShape& shape) {
  if (files.empty()) return nullptr;
  const std::vector<std::filesystem::path> paths(files.begin(), files.end());
  return std::make_shared<train::WindowSource>(
      train::encode_text_files(paths, tokenizer, flags.separator), shape);
}

std::shared_ptr<train::BatchSource> example_batches(const std::string& file,
                                                    const Tokenizer& tokenizer,
                                                    const train::BatchShape& shape) {
  const TokenId padding = tokenizer.eos_token() != kNoToken ? tokenizer.eos_token() : 0;
  return std::make_shared<train::ExampleSource>(train::read_examples(file, tokenizer), shape,
                                                padding);
}

std::string tokens_of(const train::BatchSource& batches) {
  return fmt::format("{} ({:016x})", batches.n_tokens(), batches.fingerprint());
}

int set_up_training(const RunFlags& flags) {
  train::set_training_device(flags.device);
  return train::set_training_threads(flags.threads);
}

int run_with_progress(train::Objective& objective, const RunFlags& flags,
                      train::RunSettings settings, std::string summary,
                      const std::function<void(const std::function<bool()>&)>& prepare) {
  const int n_threads = train::set_training_threads(flags.threads);
  const std::string device = train::set_training_device(flags.device);
  const train::RunSettings own = {{"steps", fmt::format("{}", flags.steps)},
                                  {"batch", fmt::format("{}", flags.batch)},
                                  {"length", fmt::format("{}", flags.length)},
                                  {"accumulate", fmt::format("{}", flags.accumulation)},
                                  {"seed", fmt::format("{}", flags.seed)},
                                  {"threads", fmt::format("{}", n_threads)},
                                  {"device", device},
                                  {"precision", precision_of(flags)},
                                  {train::kLearningRate, fmt::format("{}", flags.learning_rate)},
                                  {"final-rate", fmt::format("{}", flags.final_rate)},
                                  {"warmup", fmt::format("{}", flags.warmup)},
                                  {"weight-decay", fmt::format("{}", flags.weight_decay)},
                                  {"clip-norm", fmt::format("{}", flags.clip_norm)},
                                  {"clip-value", fmt::format("{}", flags.clip_value)},
                                  {"beta2", fmt::format("{}", flags.beta2)}};
  settings.insert(settings.end(), own.begin(), own.end());
  const train::RunOptions options{
      .directory = flags.out,
      .settings = std::move(settings),
      .schedule = {.peak = flags.learning_rate,
                   .final_share = flags.final_rate,
                   .n_warmup = flags.warmup >= 0 ? flags.warmup : flags.steps / 20,
                   .n_steps = flags.steps},
      .optimizer = {.beta2 = flags.beta2,
                    .weight_decay = flags.weight_decay,
                    .clip_norm = flags.clip_norm,
                    .clip_value = flags.clip_value},
      .seed = flags.seed,
      .accumulation = flags.accumulation,
      .checkpoint_interval = flags.checkpoint_every,
      .evaluation_interval = flags.evaluate_every,
      .export_interval = flags.export_every,
      .resume = flags.resume};
  ProgressLine progress;
  Interrupt interrupt;
  const auto has_had_enough = [&interrupt] { return interrupt.raised(); };
  HeapTrimmer heap;
  const train::RunOutcome outcome =
      train::run_training(objective, options,
                          {.on_step =
                               [&](const train::StepReport& report) {
                                 if (!summary.empty())
                                   fmt::print(stderr, "{}\n", std::exchange(summary, {}));
                                 progress.show(report);
                                 heap.after_step();
                               },
                           .should_stop =
                               [&] {
                                 if (prepare && !has_had_enough()) prepare(has_had_enough);
                                 return has_had_enough();
                               },
                           .on_new_rate =
                               [](const std::string& before, const std::string& now) {
                                 fmt::print(stderr,
                                            "outrider-train: goes on with --learning-rate {}; the "
                                            "run was begun with {}\n",
                                            now, before);
                               }});
  progress.finish();
  if (!outcome.finished) {
    fmt::print(stderr, "outrider-train: stopped after {} of {} steps; --resume goes on\n",
               outcome.n_steps_done, flags.steps);
    return kExitInterrupted;
  }
  fmt::print(stderr, "{}: written\n", flags.out);
  return 0;
}

void require_apart(const RunFlags& flags, const std::string& target) {
  std::error_code not_there;
  if (!std::filesystem::equivalent(flags.out, target, not_there) || not_there) return;
  throw UsageError("read flags", "out", "another directory than the target's", flags.out);
}

}  // namespace outrider::cli
