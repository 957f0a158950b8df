// SPDX-License-Identifier: Apache-2.0
// Language modelling: predicts the next token, in text or in completions of prompts.
#ifndef OUTRIDER_TRAIN_OBJECTIVES_LM_H_
#define OUTRIDER_TRAIN_OBJECTIVES_LM_H_

#include <cstdint>
#include <filesystem>
#include <memory>

#include "io/tensor_source.h"
#include "model/config.h"
#include "train/batches/corpus.h"
#include "train/modules/products.h"

namespace outrider::train {

class Objective;

struct LmOptions {
  ModelConfig config = {};
  Products products = Products::bf16;
  std::filesystem::path init =
      {};                  // a model of the same shape to start from; empty: random weights
  std::uint64_t seed = 0;  // of random weights
  double dropout = 0;      // in [0, 1), while training (LlamaModule::set_dropout)
  std::shared_ptr<BatchSource> batches = nullptr;
  std::shared_ptr<BatchSource> held_out = nullptr;  // may be null
  int n_held_out_batches = 8;
  std::filesystem::path tokenizer = {};  // copied beside the weights
  ElementType export_type = ElementType::bf16;
  // The number of multi-token prediction modules trained with the model
  // (train/modules/mtp_module.h), and the weight of their mean loss (lambda of DeepSeek-V3's eq.
  // 25).
  int n_mtp_modules = 0;
  double mtp_weight = 0.3;
};

// Mean cross-entropy of the tokens that count, nats; plus mtp_weight times the mean of the modules'
// losses. Held out: "loss", the model's own; for module k of 1 .. n: "mtp_loss_k",
// "mtp_agreement_k" and "mtp_overlap_k", against the model as in mtp.h. Exports a model of the
// Llama family, with the modules after its layers. Throws Error if init (which has no modules) does
// not fit.
std::shared_ptr<Objective> make_lm(const LmOptions& options);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_OBJECTIVES_LM_H_
