// Sequence to sequence: an encoder-decoder of the T5 v1.1 kind learns one text from another, from
// pairs alone or from what a larger model of the kind would say.
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
#include "train/divergence.h"
#include "train/pair_corpus.h"
#include "train/products.h"
#include "train/t5_config.h"

namespace outrider::train {

class Objective;

struct Seq2SeqOptions {
  T5Config config = {};
  Products products = Products::bf16;
  std::filesystem::path init =
      {};                  // a model of the same shape to start from; empty: random weights
  std::uint64_t seed = 0;  // of random weights
  double dropout = 0;      // in [0, 1), while it learns (T5Module::set_dropout)
  // What of a token's law is spread evenly over the vocabulary before it is learnt, in [0, 1)
  // (Szegedy et al., "Rethinking the Inception Architecture", 2016, section 7).
  double label_smoothing = 0;
  std::filesystem::path teacher = {};  // a model of the same vocabulary; empty: none
  Divergence divergence = Divergence::forward_kl;
  std::shared_ptr<PairSource> batches = nullptr;
  std::shared_ptr<PairSource> held_out = nullptr;  // may be null
  std::filesystem::path tokenizer = {};            // copied beside the weights
  std::vector<TokenId> never_said = {};            // rows of the matrices that no token of it has
  ElementType export_type = ElementType::bf16;
};

struct Seq2Seq {
  std::shared_ptr<Objective> objective;
  // What the model says to these texts at present: answer_greedily() of t5_module.h without what is
  // never said, in the batches of answer_batches.h. Throws Error on a text that is too long for
  // them.
  std::function<std::vector<std::vector<TokenId>>(std::span<const std::vector<TokenId>> sources,
                                                  int most)>
      answer;
};

// Mean cross-entropy of the targets' tokens, nats, each read behind those before it (teacher
// forcing); with a teacher the mean divergence of the model's law from its law at those places
// instead, with the metric "overlap" (DistillSpec; distill.h). Held out, over all pairs and without
// smoothing: "loss"; with a teacher that is the divergence, and "overlap", "agreement" and
// "text_loss", the cross-entropy, stand beside it. Exports a directory that transformers'
// T5ForConditionalGeneration loads. Throws Error if init or the teacher does not fit.
Seq2Seq make_seq2seq(const Seq2SeqOptions& options);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_OBJECTIVES_SEQ2SEQ_H_
