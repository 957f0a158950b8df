// Flags that training a head on a frozen target has beside those of every run.
#ifndef OUTRIDER_APPS_TRAINER_HEAD_FLAGS_H_
#define OUTRIDER_APPS_TRAINER_HEAD_FLAGS_H_

#include <CLI/CLI.hpp>
#include <string>

#include "train/objectives/head_run.h"
#include "trainer/run_flags.h"

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

// The values of `flags.run` before are the command's defaults.
void add_head_flags(CLI::App& command, HeadFlags& flags);

// Loads the target and its tokenizer and reads the text. Throws UsageError for flags that do not
// fit the target, Error for a target whose tokenizer knows more tokens than its matrices.
train::HeadRun head_run_of(const HeadFlags& flags);

// What a head's course depends on, beside the flags of the run.
train::RunSettings settings_of(const HeadFlags& flags, const train::HeadRun& run);

// Says what is trained on what, and how much room the target's features would take if they were
// stored, of n_features layers, and trains it.
int run_head(train::Objective& objective, const HeadFlags& flags, const train::HeadRun& run,
             train::RunSettings settings, int n_features);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_TRAINER_HEAD_FLAGS_H_
