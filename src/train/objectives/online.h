// SPDX-License-Identifier: Apache-2.0
// Online distillation: trains a drafter further on its target's recorded verdicts. The engine
// records them in use (io/verdict_log.h); the target itself is not needed.
//
// Source: Liu et al., "Online Speculative Decoding" (2023): serving fills a buffer of contexts and
// target distributions, and the drafter is distilled from it. The paper's buffer keeps the places
// where the drafter was corrected. This one keeps all committed places, of the newest texts up to
// the log's bound.
#ifndef OUTRIDER_TRAIN_OBJECTIVES_ONLINE_H_
#define OUTRIDER_TRAIN_OBJECTIVES_ONLINE_H_

#include <filesystem>
#include <memory>

#include "io/tensor_source.h"
#include "train/batches/verdict_texts.h"
#include "train/losses/divergence.h"
#include "train/modules/products.h"

namespace outrider::train {

class Objective;

struct OnlineOptions {
  std::filesystem::path drafter = {};  // a Hugging Face directory of the Llama family
  Products products = Products::bf16;
  Divergence divergence = Divergence::forward_kl;
  std::shared_ptr<VerdictTexts> texts = nullptr;  // may grow between steps
  ElementType export_type = ElementType::bf16;
};

// The divergence of `distill` (objectives/distill.h), its metrics and held-out metrics, on the
// places of the log. If the log lists fewer tokens than the vocabulary, both distributions are
// coarsened to the listed tokens and "any other" (coarsened_logprobs). The loss is then a lower
// bound of the true divergence, and the overlap an upper bound of the true one. The gradient
// contains nothing about the distribution among the other tokens.
//
// Exports the drafter's directory with the new weights, config.json last. Throws Error if the
// drafter is not of the Llama family or its files do not load.
std::shared_ptr<Objective> make_online(const OnlineOptions& options);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_OBJECTIVES_ONLINE_H_
