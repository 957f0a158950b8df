// SPDX-License-Identifier: Apache-2.0
// Shared by Gemma 2 and Gemma 3: norms before and after each branch, stored as offsets from 1;
// GELU; scaled embeddings; an attention scale from the configuration; soft caps; windows in all but
// every n-th layer.
#ifndef OUTRIDER_MODEL_FAMILIES_GEMMA_GEMMA_H_
#define OUTRIDER_MODEL_FAMILIES_GEMMA_GEMMA_H_

#include <vector>

#include "model/families/llama.h"
#include "model/load/config_source.h"

namespace outrider {

// How they differ in their files, and their defaults.
struct GemmaForm {
  const char* architecture = "";  // ModelConfig::architecture
  RopeKeys rope = {};             // of layers without a window
  int layers_of_27b = 0;          // identifies that size in GGUF files
  ConfigKey whole_every;          // one layer in this many reads all tokens
  int default_whole_every = 1;
  double default_score_cap = 0;  // 0: none
  double default_logit_cap = 0;
};

// The cap at that key; `otherwise` if the file has none. null and, as in llama.cpp, 0 mean none.
// Throws Error on other numbers outside 1e-3 to 1e6.
float read_soft_cap(const ConfigSource& source, const ConfigKey& key, double otherwise);

class Gemma : public Family {
 public:
  float embedding_scale() const override;
  LogitForm logit_form() const override { return {.softcap = logit_cap_}; }
  Norm load_norm(const LayerLoader& from, const TensorName& name, int width) const override;
  // Uses the first RoPE table.
  DecoderLayer load_layer(LayerLoader& from, int layer) const override;
  void compose(PassBuilder& pass, const DecoderLayer& layer) const override {
    compose_post_norm(pass, layer);
  }

 protected:
  Gemma(const ConfigSource& source, const GemmaForm& form);
  // The factor of the scores of layers with that RoPE table.
  float attention_scale(const RopeConfig& rope) const;

 private:
  std::vector<int> windows_;  // (n_layers) tokens; 0: all
  double query_scalar_;       // scores are divided by its square root
  float score_cap_;           // 0: none
  float logit_cap_;
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_FAMILIES_GEMMA_GEMMA_H_
