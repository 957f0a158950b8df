// SPDX-License-Identifier: Apache-2.0
// EAGLE heads: a decoder layer on a target's hidden states (Li, Wei, Zhang, Zhang, "EAGLE:
// Speculative Sampling Requires Rethinking Feature Uncertainty", arXiv 2401.15077; the same,
// "EAGLE-3", arXiv 2503.01840; "P-EAGLE", arXiv 2602.01469, with several layers).
#ifndef OUTRIDER_MODEL_HEADS_EAGLE_HEAD_H_
#define OUTRIDER_MODEL_HEADS_EAGLE_HEAD_H_

#include <filesystem>
#include <memory>

#include "model/heads/feature_head.h"
#include "model/load_model.h"

namespace outrider {

// PATH: a directory with config.json (eagle_config.h) and weights in safetensors, with the names of
// public checkpoints; `outrider train eagle` writes the same (docs/training.md lists them). With a
// tensor "midlayer.hidden_norm.weight", or "layers.0." instead of "midlayer.", the head is EAGLE-3,
// otherwise EAGLE. EAGLE-2 differs only in its trees.
//
// EAGLE:   x = fc [embedding; state] + bias. The layer, without a norm before its attention, gives
//          the next state; logits are the target's output matrix times that. States are the input
//          of the target's output matrix.
// EAGLE-3: the first state is fc [hidden states, usually three]. Attention reads
//          [norm(embedding); norm(state)]; residuals add to the state (or its norm). Logits are the
//          head's own output matrix times norm(next state), over its draft vocabulary. Further
//          layers, "layers.1." and so on, are plain.
// P-EAGLE: the same, with a mask token in config.json and its hidden states in a tensor
//          "mask_hidden" (FeatureHead::mask).
//
// The embedding is the head's own, embed_tokens.weight, if stored, else the target's. Throws Error
// with the file, tensor or key, what was expected and what was found. The target must outlive the
// head.
std::unique_ptr<FeatureHead> load_eagle_head(const std::filesystem::path& path,
                                             LanguageModel& target,
                                             const LoadOptions& options = {});

}  // namespace outrider

#endif  // OUTRIDER_MODEL_HEADS_EAGLE_HEAD_H_
