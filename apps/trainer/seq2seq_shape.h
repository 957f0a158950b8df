// The shape of an encoder-decoder that is to be made, or gone on with.
#ifndef OUTRIDER_APPS_TRAINER_SEQ2SEQ_SHAPE_H_
#define OUTRIDER_APPS_TRAINER_SEQ2SEQ_SHAPE_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "outrider/tokenizer.h"
#include "train/t5_config.h"

namespace outrider::cli {

// 0: not given. Then a model to start from says it, or, without one, the defaults: 4 layers, width
// 64, 4 heads of 32, 256 in the feed-forward layer.
struct Seq2SeqShapeFlags {
  int layers = 0;
  int decoder_layers = 0;  // without a model to start from: as many as layers
  int dim = 0;
  int heads = 0;
  int head_dim = 0;
  int hidden = 0;
  std::string init;  // a model to start from; empty: none
};

// --layers and its company, and --init.
void add_seq2seq_shape(CLI::App& command, Seq2SeqShapeFlags& flags);

// What is to be trained. With --init that is the model's own config.json; else these flags' shape
// over the tokenizer's vocabulary, or with a teacher (a directory, or empty) over the teacher's
// rows, with its special tokens. Throws UsageError where a flag and the model of --init differ;
// Error where a model's end token is not the tokenizer's, where it has fewer rows than the
// tokenizer has ids, and where the tokenizer names no token that could be padding.
train::T5Config config_of(const Seq2SeqShapeFlags& flags, const std::string& teacher,
                          const Tokenizer& tokenizer);

// The ids below n_rows for which the tokenizer has no token, ascending.
std::vector<TokenId> rows_without_token(const Tokenizer& tokenizer, int n_rows);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_TRAINER_SEQ2SEQ_SHAPE_H_
