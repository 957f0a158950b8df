// SPDX-License-Identifier: Apache-2.0
// Flags for training a draft head on a frozen target, in addition to those of every run.
#ifndef OUTRIDER_APPS_TRAINER_HEAD_FLAGS_H_
#define OUTRIDER_APPS_TRAINER_HEAD_FLAGS_H_

#include <CLI/CLI.hpp>
#include <string>

#include "apps/trainer/run_flags.h"
#include "train/objectives/head_run.h"

namespace outrider::cli {

struct HeadFlags {
  RunFlags run;
  TextFlags text;
  std::string examples;           // a file, instead of text.text
  std::string held_out_examples;  // a file, instead of text.held_out
  std::string target;             // a Hugging Face directory or a .gguf file
  // "fixed": trains on the text as it is. "generated": on what the target writes, at `temperature`,
  // after the first `prompt` tokens of each sequence.
  std::string data = "fixed";
  double temperature = 0;
  int prompt = 32;
};

// The values in `flags.run` are the command's defaults. Parsing changes `flags`, which must outlive
// the command.
void add_head_flags(CLI::App& command, HeadFlags& flags);

// Sets the process's training threads and device, loads the target and its tokenizer, and reads the
// text or the examples. Throws UsageError for flags that contradict each other or do not fit the
// target. Throws Error for a file that cannot be read, and for a tokenizer with more tokens than
// the target's matrices have rows.
train::HeadRun head_run_of(const HeadFlags& flags);

// The settings that a resumed run must share (RunSettings), in addition to those of the run's
// flags.
train::RunSettings settings_of(const HeadFlags& flags, const train::HeadRun& run);

// Trains the head and returns the exit status. After the first step it prints the sizes of head,
// text and target, and the bytes that stored features would take. n_features: the number of the
// target's layers whose features the head reads.
int run_head(train::Objective& objective, const HeadFlags& flags, const train::HeadRun& run,
             train::RunSettings settings, int n_features);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_TRAINER_HEAD_FLAGS_H_
