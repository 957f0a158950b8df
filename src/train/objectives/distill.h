// SPDX-License-Identifier: Apache-2.0
// Distillation: trains a drafter's distribution towards the target's, on given text or on text that
// the drafter samples.
//
// Source: Zhou et al., "DistillSpec: Improving Speculative Decoding via Knowledge Distillation"
// (2024): algorithm 1, with the divergences of section 3.
#ifndef OUTRIDER_TRAIN_OBJECTIVES_DISTILL_H_
#define OUTRIDER_TRAIN_OBJECTIVES_DISTILL_H_

#include <cstdint>
#include <filesystem>
#include <memory>

#include "io/tensor_source.h"
#include "model/config.h"
#include "train/batches/corpus.h"
#include "train/losses/divergence.h"
#include "train/modules/products.h"
#include "train/teacher.h"

namespace outrider::train {

class Objective;

struct DistillOptions {
  ModelConfig config = {};  // the drafter's
  Products products = Products::bf16;
  std::filesystem::path init =
      {};  // a model of the same shape to start from; empty: random weights
  std::uint64_t seed = 0;
  std::shared_ptr<Teacher> target = nullptr;
  Divergence divergence = Divergence::forward_kl;
  // The share of batches whose text the drafter samples. The drafter reads the first n_prompt
  // tokens of each sequence and samples the rest; only the sampled tokens count in the loss. No
  // gradient flows through the sampling.
  double on_policy = 0;
  int n_prompt = 16;
  std::shared_ptr<BatchSource> batches = nullptr;
  std::shared_ptr<BatchSource> held_out = nullptr;  // may be null
  int n_held_out_batches = 8;
  std::filesystem::path tokenizer = {};  // copied beside the weights
  ElementType export_type = ElementType::bf16;
};

// The divergence at temperature 1, mean over the tokens that count. Metric: "overlap", the expected
// acceptance of one drafted token on the batch. Held out, on given text: "loss", "overlap", and
// "agreement", the share of places where both have the same likeliest token. Exports a model of the
// Llama family. Throws Error if the vocabularies' sizes differ or init does not fit.
std::shared_ptr<Objective> make_distill(const DistillOptions& options);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_OBJECTIVES_DISTILL_H_
