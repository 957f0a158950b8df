// SPDX-License-Identifier: Apache-2.0
// The config.json of a block head, in the forms of public heads.
#ifndef OUTRIDER_MODEL_HEADS_BLOCK_HEAD_CONFIG_H_
#define OUTRIDER_MODEL_HEADS_BLOCK_HEAD_CONFIG_H_

#include <filesystem>
#include <vector>

#include "model/config.h"

namespace outrider {

// dflash: slots do not depend on each other's tokens. dspark: a Markov head (markov_head.h) adds
// logits that depend on the previous token.
enum class BlockHeadKind { dflash, dspark };

// The forms, and the places of their keys:
// - z-lab's (DFlash's authors) and SpecForge's: a decoder's keys and "block_size", and
//   "dflash_config" with "mask_token_id" and "target_layer_ids"; any of these may be in either
//   place;
// - DeepSpec's (DSpark's authors): all keys at the top;
// - speculators' (vLLM's): "speculators_model_type", the decoder's keys in
//   "transformer_layer_config".
struct BlockHeadConfig {
  BlockHeadKind kind = BlockHeadKind::dflash;
  ModelConfig layers;  // their vocabulary is the target's
  // The target's hidden states that the head reads (ForwardRequest::feature_layers).
  std::vector<int> feature_layers;
  int n_slots = 0;  // slots of a block, including the anchor's
  TokenId mask = kNoToken;
  // true: a slot predicts the token after its place, so n_slots tokens are drafted, the first by
  // the anchor's slot. false: each slot predicts the token at its place, and the anchor's none.
  bool gives_next = false;
  struct Layer {
    int window = 0;  // Attention::window
    bool reads_whole_block = true;
  };
  std::vector<Layer> attention;  // (layers.n_layers)
  // For dspark.
  struct Markov {
    enum class Form { vanilla, gated, recurrent };
    Form form = Form::vanilla;
    int rank = 0;
    bool has_confidence = false;
    bool confidence_reads_token = false;
  };
  Markov markov = {};
  // Whether stored embeddings and an output matrix are the head's own. DeepSpec's files repeat the
  // target's.
  bool own_matrices = false;

  int n_drafted() const { return gives_next ? n_slots : n_slots - 1; }
};

// Limit of a block's slots: published heads have 5 to 16.
inline constexpr int kMaxBlockSlots = 64;
// Limit of a Markov head's rank: published heads have 256 and 512.
inline constexpr int kMaxMarkovRank = 1 << 16;

// Reads config.json of a head of that kind in `directory`, for a target of that shape. Throws Error
// with file and key for values that are missing, malformed, out of bounds, of another target, or
// unknown.
//
// "target_layer_ids" count layers whose output is read, -1 being the embedding; speculators'
// "aux_hidden_state_layer_ids" count residual streams. Without them, the rule of DFlash's authors
// applies: a head of L layers on a target of N reads round(1 + i (N - 4) / (L - 1)) for i below L,
// or N/2 for one layer. "sample_from_anchor" says whether slots predict the next token; by default
// DSpark's do and DFlash's do not. Layers to which "layer_types" gives a window are causal unless
// "is_causal", which has priority, or dflash_config's "causal" says otherwise. dflash_config's
// "use_swa" gives all layers a window if none is listed; its "swa_window_size" has priority over
// "sliding_window".
BlockHeadConfig read_block_head_config(const std::filesystem::path& directory,
                                       const ModelConfig& target, BlockHeadKind kind);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_HEADS_BLOCK_HEAD_CONFIG_H_
