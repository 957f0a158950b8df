// SPDX-License-Identifier: Apache-2.0
// Sequence to sequence: an encoder-decoder of the T5 v1.1 kind learns to produce one text from
// another. It learns from pairs, or from the distributions of a larger model of the same kind.
#ifndef OUTRIDER_TRAIN_OBJECTIVES_SEQ2SEQ_H_
#define OUTRIDER_TRAIN_OBJECTIVES_SEQ2SEQ_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "io/tensor_source.h"
#include "outrider/types.h"
#include "train/batches/pair_corpus.h"
#include "train/losses/divergence.h"
#include "train/modules/products.h"
#include "train/modules/t5_config.h"

namespace outrider::train {

class Objective;

struct Seq2SeqOptions {
  T5Config config = {};
  Products products = Products::bf16;
  std::filesystem::path init =
      {};                  // a model of the same shape to start from; empty: random weights
  std::uint64_t seed = 0;  // of random weights
  double dropout = 0;      // in [0, 1), while training (T5Module::set_dropout)
  // The share of a target token's probability that is spread evenly over the vocabulary in
  // training, in [0, 1) (Szegedy et al., "Rethinking the Inception Architecture", 2016, section 7).
  double label_smoothing = 0;
  std::filesystem::path teacher = {};  // a model of the same vocabulary; empty: none
  Divergence divergence = Divergence::forward_kl;
  std::shared_ptr<PairSource> batches = nullptr;
  std::shared_ptr<PairSource> held_out = nullptr;  // may be null
  std::filesystem::path tokenizer = {};            // copied beside the weights
  std::vector<TokenId> excluded_tokens = {};       // ids without a token in the tokenizer
  ElementType export_type = ElementType::bf16;
};

struct Seq2Seq {
  std::shared_ptr<Objective> objective;
  // Returns the present model's answers to these texts: answer_greedily() of t5_module.h without
  // excluded_tokens, in the batches of answer_batches.h. Throws Error on a text that is too
  // long for them.
  std::function<std::vector<std::vector<TokenId>>(std::span<const std::vector<TokenId>> sources,
                                                  int max_tokens)>
      answer;
};

// Mean cross-entropy of the targets' tokens, nats, with teacher forcing. With a teacher it is
// instead the mean divergence of the model's distribution from the teacher's at those places, with
// the metric "overlap" (DistillSpec; distill.h). Held out, over all pairs and without smoothing:
// "loss". With a teacher that is the divergence, and "overlap", "agreement" and "text_loss" (the
// cross-entropy) are added. Exports a directory that transformers' T5ForConditionalGeneration
// loads. Throws Error if init or the teacher does not fit.
Seq2Seq make_seq2seq(const Seq2SeqOptions& options);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_OBJECTIVES_SEQ2SEQ_H_
