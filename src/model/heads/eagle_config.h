// What an EAGLE head's config.json says, in the forms that public heads come in.
#ifndef OUTRIDER_MODEL_HEADS_EAGLE_CONFIG_H_
#define OUTRIDER_MODEL_HEADS_EAGLE_CONFIG_H_

#include <filesystem>
#include <optional>
#include <vector>

#include "model/config.h"
#include "outrider/types.h"

namespace outrider {

// The forms, and where their keys stand (a key of "eagle_config" may stand at the top as well):
// - the authors' and our own: a decoder's keys; our own add "eagle_inputs" and "feature_layers";
// - SpecForge's, SGLang's and NVIDIA's: beside them "eagle_config";
// - DeepSpec's: beside them "target_layer_ids";
// - speculators' (vLLM's): "speculators_model_type", the decoder's keys in
//   "transformer_layer_config".
// P-EAGLE's mask token is "ptd_token_id" (vLLM), "mask_token_id" (speculators) or "pard_token".
struct EagleConfig {
  ModelConfig layer;  // of a layer; its vocabulary is the target's

  // EAGLE. What of its row's two inputs a head reads: both, but for trained ablations.
  bool reads_states = true;
  bool reads_tokens = true;

  // EAGLE-3. The target's hidden states that the head reads (ForwardRequest::feature_layers).
  std::vector<int> feature_layers;
  bool norm_before_residual = false;  // the residual begins with the normed state
  bool norm_before_fc = false;        // one norm over the joined hidden states, "input_norm"
  bool norm_each_feature = false;     // a norm of each hidden state, "fc_norm.I"
  bool norm_output = false;           // the next row reads the normed state

  // P-EAGLE. The token of the rows that stand for tokens to come; none: the head drafts step by
  // step.
  std::optional<TokenId> mask_token = std::nullopt;
};

// Reads config.json in `directory` for a target of that shape. Throws Error naming file and key on
// what is missing, malformed, out of bounds, or of a meaning that is not known.
//
// Numbers of layers. ForwardRequest counts residual streams: l is the one behind l layers. So do
// "feature_layers", speculators' "aux_hidden_state_layer_ids" and
// "eagle_aux_hidden_state_layer_ids" at the top (vLLM captures before layer l). In "eagle_config",
// and in "target_layer_ids", l is the layer whose output is read (SGLang and DFlash capture before
// layer l + 1). Without any: 2, n/2 and n - 3 of n layers, as the authors' program has it.
EagleConfig read_eagle_config(const std::filesystem::path& directory, const ModelConfig& target);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_HEADS_EAGLE_CONFIG_H_
