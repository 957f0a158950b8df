// SPDX-License-Identifier: Apache-2.0
// Flags of every training command: number of steps, learning rate, output.
#ifndef OUTRIDER_APPS_TRAINER_RUN_FLAGS_H_
#define OUTRIDER_APPS_TRAINER_RUN_FLAGS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "io/tensor_source.h"
#include "outrider/tokenizer.h"
#include "train/batches/corpus.h"
#include "train/losses/divergence.h"
#include "train/modules/products.h"
#include "train/training_run.h"

namespace outrider::cli {

struct RunFlags {
  std::string out;
  int steps = 1000;
  int batch = 16;
  int length = 256;
  int accumulation = 1;
  double learning_rate = 1e-3;
  double final_rate = 0.1;
  int warmup = -1;  // -1: a twentieth of the steps
  double weight_decay = 0.1;
  double clip_norm = 1;
  double clip_value = 0;
  double beta2 = 0.95;
  int checkpoint_every = 500;
  int evaluate_every = 0;
  int export_every = 0;
  std::uint64_t seed = 0;
  int threads = 0;
  std::string precision = "auto";
  std::string device = "auto";
  std::string export_type = "bf16";
  bool resume = false;
};

// The values in `flags` are the command's defaults. `held_out_flag`: the flag for the evaluation
// data.
void add_run_flags(CLI::App& command, RunFlags& flags,
                   const std::string& held_out_flag = "--held-out");

struct TextFlags {
  std::vector<std::string> text;
  std::vector<std::string> held_out;
  std::string separator;
};
// --text and related flags. `what` completes the description of --text.
void add_text_flags(CLI::App& command, TextFlags& flags, const std::string& what);

// --examples and --held-out-examples.
void add_example_flags(CLI::App& command, std::string& examples, std::string& held_out);

// --divergence of the distillation commands.
void add_divergence(CLI::App& command, std::string& name, const std::string& group);
train::Divergence divergence_of(const std::string& name);

// Sets the threads and the device of all training; call it before anything else of training.
// Returns the number of threads.
int set_up_training(const RunFlags& flags);

train::BatchShape batch_shape(const RunFlags& flags);
train::Products products_of(const RunFlags& flags);
ElementType export_type_of(const RunFlags& flags);

// The files as batches; null for no files.
std::shared_ptr<train::BatchSource> text_batches(const std::vector<std::string>& files,
                                                 const TextFlags& flags, const Tokenizer& tokenizer,
                                                 const train::BatchShape& shape);

// A file of examples as batches.
std::shared_ptr<train::BatchSource> example_batches(const std::string& file,
                                                    const Tokenizer& tokenizer,
                                                    const train::BatchShape& shape);

// The number of tokens and their fingerprint, as a setting that a resumed run must share.
std::string tokens_of(const train::BatchSource& batches);

// Runs to the end or to Ctrl-C, with a progress line; returns the exit status. `settings` are added
// to those of the flags. `summary` is shown after the first step. `prepare`, if given, is called
// before each step and may wait for the step's data. Its argument tells whether the user has
// interrupted; `prepare` then returns soon.
int run_with_progress(train::Objective& objective, const RunFlags& flags,
                      train::RunSettings settings, std::string summary,
                      const std::function<void(const std::function<bool()>&)>& prepare = {});

// Throws UsageError if the run would write its files over the target's.
void require_apart(const RunFlags& flags, const std::string& target);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_TRAINER_RUN_FLAGS_H_
