// SPDX-License-Identifier: Apache-2.0
// The shape of an encoder-decoder to create or to train further.
#ifndef OUTRIDER_APPS_TRAINER_SEQ2SEQ_SHAPE_H_
#define OUTRIDER_APPS_TRAINER_SEQ2SEQ_SHAPE_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "outrider/tokenizer.h"
#include "train/modules/t5_config.h"

namespace outrider::cli {

// 0: not given. The value then comes from the initial model, or without one from the defaults: 4
// layers, width 64, 4 heads of 32, 256 in the feed-forward layer.
struct Seq2SeqShapeFlags {
  int layers = 0;
  int decoder_layers = 0;  // without an initial model: as many as layers
  int dim = 0;
  int heads = 0;
  int head_dim = 0;
  int hidden = 0;
  std::string init;  // the initial model; empty: none
};

// --layers and related flags, and --init.
void add_seq2seq_shape(CLI::App& command, Seq2SeqShapeFlags& flags);

// The configuration to train. With --init it is that model's config.json. Otherwise it is the shape
// of these flags, with the tokenizer's vocabulary; with a teacher (a directory, or empty) it has
// the teacher's rows and special tokens. Throws UsageError if a flag and the model of --init
// differ. Throws Error if a model's end token is not the tokenizer's, if it has fewer rows than the
// tokenizer has ids, and if the tokenizer has no token for padding.
train::T5Config config_of(const Seq2SeqShapeFlags& flags, const std::string& teacher,
                          const Tokenizer& tokenizer);

// The ids below n_rows without a token in the tokenizer, ascending.
std::vector<TokenId> rows_without_token(const Tokenizer& tokenizer, int n_rows);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_TRAINER_SEQ2SEQ_SHAPE_H_
