// SPDX-License-Identifier: Apache-2.0
// The config.json of an EAGLE head, in the forms of public heads.
#ifndef OUTRIDER_MODEL_HEADS_EAGLE_CONFIG_H_
#define OUTRIDER_MODEL_HEADS_EAGLE_CONFIG_H_

#include <filesystem>
#include <optional>
#include <vector>

#include "model/config.h"
#include "outrider/types.h"

namespace outrider {

// The forms, and the places of their keys (a key of "eagle_config" may also be at the top):
// - the authors' and our own: a decoder's keys; our own add "eagle_inputs" and "feature_layers";
// - SpecForge's, SGLang's and NVIDIA's: also "eagle_config";
// - DeepSpec's: also "target_layer_ids";
// - speculators' (vLLM's): "speculators_model_type", the decoder's keys in
//   "transformer_layer_config".
// P-EAGLE's mask token is "ptd_token_id" (vLLM), "mask_token_id" (speculators) or "pard_token".
struct EagleConfig {
  ModelConfig layer;  // of a layer; its vocabulary is the target's

  // EAGLE: which of a row's two inputs the head reads. Both, except in trained ablations.
  bool reads_states = true;
  bool reads_tokens = true;

  // EAGLE-3: the target's hidden states that the head reads (ForwardRequest::feature_layers).
  std::vector<int> feature_layers;
  bool norm_before_residual = false;  // the residual begins with the normed state
  bool norm_before_fc = false;        // one norm over the concatenated hidden states, "input_norm"
  bool norm_each_feature = false;     // a norm of each hidden state, "fc_norm.I"
  bool norm_output = false;           // the next row reads the normed state

  // P-EAGLE: the token of the rows that predict later tokens; none: the head drafts step by step.
  std::optional<TokenId> mask_token = std::nullopt;
};

// Reads config.json in `directory` for a target of that shape. Throws Error with file and key for
// values that are missing, malformed, out of bounds or unknown.
//
// Numbers of layers: ForwardRequest counts residual streams, so l is the stream after l layers. So
// do "feature_layers", speculators' "aux_hidden_state_layer_ids" and a top-level
// "eagle_aux_hidden_state_layer_ids" (vLLM captures before layer l). In "eagle_config", and in
// "target_layer_ids", l is the layer whose output is read (SGLang and DFlash capture before layer l
// + 1). Default: 2, n/2 and n - 3 of n layers, as in the authors' program.
EagleConfig read_eagle_config(const std::filesystem::path& directory, const ModelConfig& target);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_HEADS_EAGLE_CONFIG_H_
