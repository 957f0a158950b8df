// SPDX-License-Identifier: Apache-2.0
// PARD: adapts a small model to draft several tokens in one pass, with mask tokens.
//
// Source: An et al., "PARD: Accelerating LLM Inference with Low-Cost PARallel Draft Model
// Adaptation" (arXiv 2504.18583): the loss, and the choice of training rows
// (train/batches/mask_rows.h).
#ifndef OUTRIDER_TRAIN_OBJECTIVES_PARD_H_
#define OUTRIDER_TRAIN_OBJECTIVES_PARD_H_

#include <cstdint>
#include <filesystem>
#include <memory>

#include "io/tensor_source.h"
#include "outrider/types.h"
#include "train/batches/corpus.h"
#include "train/batches/mask_choice.h"
#include "train/modules/products.h"

namespace outrider::train {

class Objective;

struct PardOptions {
  std::filesystem::path drafter = {};  // a Hugging Face directory of the Llama family
  Products products = Products::bf16;
  TokenId mask = 0;
  MaskChoice rows = {};
  std::shared_ptr<BatchSource> batches = nullptr;
  std::shared_ptr<BatchSource> held_out = nullptr;  // may be null
  int n_held_out_batches = 8;
  ElementType export_type = ElementType::bf16;
};

// Mean cross-entropy, nats, of the tokens that count, over the text's rows and the mask rows
// together. The places of mask rows are drawn for each batch, the same for all of its sequences.
// Held out: "loss" of every place with a full draft after it; "loss_k" and "agreement_k" (the share
// of places whose likeliest token is the text's) of the kth token of a draft, k from 1; "accepted",
// the mean number of tokens from the first on that equal the text's.
//
// Exports the drafter's directory with the new weights and `pard_token` in config.json. Throws
// UsageError if the mask is not a token of the drafter, the draft has fewer than 2 tokens, or a
// share is outside (0, 1]; Error if the drafter is not of the Llama family or does not load.
std::shared_ptr<Objective> make_pard(const PardOptions& options);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_OBJECTIVES_PARD_H_
