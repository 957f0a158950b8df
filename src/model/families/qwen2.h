// SPDX-License-Identifier: Apache-2.0
// Qwen2 and Qwen2.5 (Yang et al. 2024): a Llama whose query, key and value products have biases, in
// some checkpoints with sliding windows from some layer on.
#ifndef OUTRIDER_MODEL_FAMILIES_QWEN2_H_
#define OUTRIDER_MODEL_FAMILIES_QWEN2_H_

#include "model/families/llama.h"

namespace outrider {

class Qwen2 final : public Family {
 public:
  explicit Qwen2(const ConfigSource& source);
  DecoderLayer load_layer(LayerLoader& from, int layer) const override;
  void compose(PassBuilder& pass, const DecoderLayer& layer) const override {
    compose_pre_norm(pass, layer);
  }

 private:
  std::vector<int> windows_;  // (n_layers) tokens; 0: all
};

// The windows of a Qwen's layers (Qwen3 has the same keys): all 0 unless use_sliding_window.
std::vector<int> read_qwen_windows(const ConfigSource& source, int n_layers);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_FAMILIES_QWEN2_H_
