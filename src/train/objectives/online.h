// Online distillation: a drafter goes on learning from what its target has said in use, recorded by
// the engine (io/verdict_log.h), with no target at hand.
//
// Source: Liu et al., "Online Speculative Decoding" (2023): a buffer of contexts and target laws
// that serving fills, and distillation from it. There the buffer keeps the places where the drafter
// was corrected; here all that were committed are kept, the newest texts up to the log's bound.
#ifndef OUTRIDER_TRAIN_OBJECTIVES_ONLINE_H_
#define OUTRIDER_TRAIN_OBJECTIVES_ONLINE_H_

#include <filesystem>
#include <memory>

#include "io/tensor_source.h"
#include "train/divergence.h"
#include "train/products.h"
#include "train/verdict_texts.h"

namespace outrider::train {

class Objective;

struct OnlineOptions {
  std::filesystem::path drafter = {};  // a Hugging Face directory of the Llama family
  Products products = Products::bf16;
  Divergence divergence = Divergence::forward_kl;
  std::shared_ptr<VerdictTexts> texts = nullptr;  // may grow between steps
  ElementType export_type = ElementType::bf16;
};

// The divergence of `distill` (objectives/distill.h), its metrics and held-out figures, on the
// places of the log. Where the log lists fewer tokens than the vocabulary both laws are coarsened
// to the listed ones and "any other" (coarsened_logprobs): the loss is then a lower bound of the
// true divergence, the overlap an upper bound of the true one, and the gradient says nothing of how
// the rest is shared out.
//
// Exports the drafter's directory with the new weights, config.json last. Throws Error if the
// drafter is not of the Llama family or its files do not load.
std::shared_ptr<Objective> make_online(const OnlineOptions& options);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_OBJECTIVES_ONLINE_H_
