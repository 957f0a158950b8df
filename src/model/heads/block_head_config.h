// What the config.json of a head that drafts a block says, in the forms that public heads come in.
#ifndef OUTRIDER_MODEL_HEADS_BLOCK_HEAD_CONFIG_H_
#define OUTRIDER_MODEL_HEADS_BLOCK_HEAD_CONFIG_H_

#include <filesystem>
#include <vector>

#include "model/config.h"

namespace outrider {

// dflash: slots know nothing of each other's tokens. dspark: a Markov head (markov_head.h) adds to
// a slot's logits what the token before it says.
enum class BlockHeadKind { dflash, dspark };

// The forms, and where their keys stand:
// - z-lab's (DFlash's authors) and SpecForge's: a decoder's keys and "block_size", beside them
//   "dflash_config" with "mask_token_id" and "target_layer_ids"; any of these may stand in either
//   place;
// - DeepSpec's (DSpark's authors): all keys at the top;
// - speculators' (vLLM's): "speculators_model_type", the decoder's keys in
//   "transformer_layer_config".
struct BlockHeadConfig {
  BlockHeadKind kind = BlockHeadKind::dflash;
  ModelConfig layers;  // their vocabulary is the target's
  // The target's hidden states that the head reads (ForwardRequest::feature_layers).
  std::vector<int> feature_layers;
  int n_slots = 0;  // places of a block, the anchor's included
  TokenId mask = kNoToken;
  // Whether a slot gives the token behind its place: n_slots drafted tokens, the anchor's slot the
  // first. Otherwise each slot gives the token at its own place, and the anchor's nothing.
  bool gives_next = false;
  struct Layer {
    int window = 0;  // Attention::window
    bool reads_whole_block = true;
  };
  std::vector<Layer> attention;  // (layers.n_layers)
  // Of dspark.
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

// Most slots of a block: published heads have 5 to 16.
inline constexpr int kMostBlockSlots = 64;
// Most of a Markov head's rank: published heads have 256 and 512.
inline constexpr int kMostMarkovRank = 1 << 16;

// Reads config.json of a head of that kind in `directory` for a target of that shape. Throws Error
// naming file and key on what is missing, malformed, out of bounds, of another target, or of a
// meaning that is not known.
//
// "target_layer_ids" count layers whose output is read, -1 the embedding; speculators'
// "aux_hidden_state_layer_ids" count residual streams. Without them: of a head of L layers on a
// target of N, round(1 + i (N - 4) / (L - 1)) for i below L, or N/2 of one layer, as DFlash's
// authors have it. "sample_from_anchor" says whether slots give the next token; without it DSpark's
// do and DFlash's do not. Layers that "layer_types" gives a window are causal unless the file says
// otherwise: "is_causal", which wins, or dflash_config's "causal". dflash_config's "use_swa" gives
// all layers a window where none is listed; its "swa_window_size" wins over "sliding_window".
BlockHeadConfig read_block_head_config(const std::filesystem::path& directory,
                                       const ModelConfig& target, BlockHeadKind kind);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_HEADS_BLOCK_HEAD_CONFIG_H_
