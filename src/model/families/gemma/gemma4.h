// SPDX-License-Identifier: Apache-2.0
// Gemma 4, text (E2B, E4B, 31B, 26B-A4B; as transformers 5.12.1 and llama.cpp compute it). It has
// norms before and after each branch, and of query, key and value heads. Layers have a window, or
// none and wider, partly rotated heads. Some models also have: a second embedding for each layer's
// input, last layers that read the keys and values of earlier ones, values that are keys, experts
// beside each MLP.
#ifndef OUTRIDER_MODEL_FAMILIES_GEMMA_GEMMA4_H_
#define OUTRIDER_MODEL_FAMILIES_GEMMA_GEMMA4_H_

#include <utility>
#include <vector>

#include "model/families/family.h"
#include "model/load/config_source.h"

namespace outrider {

// The contents of its configuration.
struct Gemma4Config {
  ModelConfig decoder;           // of layers with a window
  ModelConfig whole;             // of the others: their heads and their RoPE
  std::vector<int> windows;      // (n_layers) tokens; 0: all
  std::vector<int> hidden_dims;  // (n_layers)
  bool values_are_keys = false;  // in layers without a window
  float logit_cap = 0;           // 0: none
};

// The layers of another model whose keys and values an assistant's layers read: one with a window,
// and one without. -1: there is none.
struct LentLayers {
  int windowed = -1;
  int whole = -1;
};

class Gemma4 final : public Family {
 public:
  explicit Gemma4(const ConfigSource& source);
  // The layers of an assistant, none of which has its own keys and values
  // (heads/gemma4_assistant.h); their reads_layer is a layer of the target.
  Gemma4(const ConfigSource& source, const LentLayers& lent);
  std::vector<RopeTable> ropes() const override;
  float embedding_scale() const override;
  LogitForm logit_form() const override { return {.softcap = own_.logit_cap}; }
  LayerInputs load_layer_inputs(LayerLoader& from) const override;
  DecoderLayer load_layer(LayerLoader& from, int layer) const override;
  void compose(PassBuilder& pass, const DecoderLayer& layer) const override;

 private:
  enum Rope { kWhole, kLocal };

  explicit Gemma4(Gemma4Config config) : Family(config.decoder), own_(std::move(config)) {}
  Attention load_attention(LayerLoader& from, int layer) const;
  void load_experts(LayerLoader& from, DecoderLayer& layer) const;

  Gemma4Config own_;
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_FAMILIES_GEMMA_GEMMA4_H_
