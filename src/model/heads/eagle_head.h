// EAGLE heads: a decoder layer on a target's hidden states (Li, Wei, Zhang, Zhang, "EAGLE:
// Speculative Sampling Requires Rethinking Feature Uncertainty", arXiv 2401.15077; the same,
// "EAGLE-3", arXiv 2503.01840; "P-EAGLE", arXiv 2602.01469, which has several).
#ifndef OUTRIDER_MODEL_HEADS_EAGLE_HEAD_H_
#define OUTRIDER_MODEL_HEADS_EAGLE_HEAD_H_

#include <filesystem>
#include <memory>

#include "model/heads/feature_head.h"
#include "model/load_model.h"

namespace outrider {

// PATH: a directory with config.json (eagle_config.h) and weights in safetensors under the names of
// the public checkpoints, as `outrider train eagle` writes it too (docs/training.md lists them).
// With a tensor "midlayer.hidden_norm.weight", or "layers.0." in place of "midlayer.", the head is
// one of EAGLE-3, otherwise of EAGLE; EAGLE-2 differs in its trees alone.
//
// EAGLE:   x = fc [embedding; state] + bias; the layer without a norm before its attention gives
//          the next state, logits are the target's output matrix times that. States are what the
//          target's output matrix reads.
// EAGLE-3: the first state is fc [hidden states, three as a rule]; attention reads
//          [norm(embedding); norm(state)], residuals run along the state (or its norm); logits are
//          the head's own output matrix times norm(next state), over its draft vocabulary. Further
//          layers, "layers.1." and so on, are plain.
// P-EAGLE: the same, with a mask token in config.json and the hidden states that go with it in a
//          tensor "mask_hidden" (FeatureHead::mask).
//
// The embedding is the head's own, embed_tokens.weight, where it has one, else the target's. Throws
// Error naming the file, tensor or key, what was expected and what came. The target outlives the
// head.
std::unique_ptr<FeatureHead> load_eagle_head(const std::filesystem::path& path,
                                             LanguageModel& target,
                                             const LoadOptions& options = {});

}  // namespace outrider

#endif  // OUTRIDER_MODEL_HEADS_EAGLE_HEAD_H_
