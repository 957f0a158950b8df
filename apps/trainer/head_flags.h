// SPDX-License-Identifier: Apache-2.0
// Flags for training a head on a frozen target, in addition to those of every run.
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
  std::string examples;
  std::string held_out_examples;
  std::string target;
  std::string data = "fixed";
  double temperature = 0;
  int prompt = 32;
};

// The values in `flags.run` are the command's defaults.
void add_head_flags(CLI::App& command, HeadFlags& flags);

// Loads the target and its tokenizer and reads the text. Throws UsageError for flags that do not
// fit the target, and Error for a target whose tokenizer has more tokens than its matrices have
// rows.
train::HeadRun head_run_of(const HeadFlags& flags);

// The settings that affect a head's training, in addition to those of the run.
train::RunSettings settings_of(const HeadFlags& flags, const train::HeadRun& run);

// Prints the trained head and its target, and the space that the features of n_features layers
// would take if stored; then trains the head.
int run_head(train::Objective& objective, const HeadFlags& flags, const train::HeadRun& run,
             train::RunSettings settings, int n_features);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_TRAINER_HEAD_FLAGS_H_
