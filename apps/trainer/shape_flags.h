// SPDX-License-Identifier: Apache-2.0
// The shape of a model to create.
#ifndef OUTRIDER_APPS_TRAINER_SHAPE_FLAGS_H_
#define OUTRIDER_APPS_TRAINER_SHAPE_FLAGS_H_

#include <CLI/CLI.hpp>
#include <string>

#include "model/config.h"
#include "outrider/tokenizer.h"
#include "train/training_run.h"

namespace outrider::cli {

struct ShapeFlags {
  int layers = 4;
  int dim = 256;
  int heads = 0;     // 0: dim / 64, at least 1
  int kv_heads = 0;  // 0: as many as heads
  int hidden = 0;    // 0: 8/3 of dim, rounded up to a multiple of 32
  int context = 0;   // 0: 2048
  double rope_theta = 10000;
  bool untied = false;
};

void add_shape_flags(CLI::App& command, ShapeFlags& flags);

// The Llama-family configuration of these flags for a tokenizer's vocabulary. Throws UsageError if
// the flags contradict one another.
ModelConfig config_of(const ShapeFlags& flags, const Tokenizer& tokenizer);

train::RunSettings settings_of(const ShapeFlags& flags);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_TRAINER_SHAPE_FLAGS_H_
