// SPDX-License-Identifier: Apache-2.0
// Shared by Qwen3-Next and Qwen3.5: a gated DeltaNet instead of attention in all but about every
// fourth layer, attention whose output has a gate, and norms that are stored as an offset from 1.
#ifndef OUTRIDER_MODEL_FAMILIES_RECURRENT_QWEN_HYBRID_H_
#define OUTRIDER_MODEL_FAMILIES_RECURRENT_QWEN_HYBRID_H_

#include <optional>
#include <vector>

#include "model/families/family.h"
#include "model/load/config_source.h"
#include "model/load/expert_loader.h"

namespace outrider {

struct QwenHybridForm {
  const char* architecture;
  // A DeltaNet's products are stored in two matrices, key head by key head; else in four.
  bool has_joined_products = false;
  // GGUF files place the value heads of a key head n_key_heads apart.
  bool is_tiled_in_gguf = false;
  bool has_rope_sections = false;
  // config.json has a width of MLPs without experts. Otherwise all layers have experts, or none.
  bool has_mlp_width = true;
  bool has_experts = false;
};

class QwenHybrid : public Family {
 public:
  QwenHybrid(const ConfigSource& source, const QwenHybridForm& form);
  RecurrentLayers recurrent_layers() const override;
  Norm load_norm(const LayerLoader& from, const TensorName& name, int width) const override;
  DecoderLayer load_layer(LayerLoader& from, int layer) const override;
  std::optional<ModuleNames> module_names() const override;
  DecoderLayer load_module_layer(LayerLoader& from) const override;
  void compose(PassBuilder& pass, const DecoderLayer& layer) const override;

 private:
  DecoderLayer load_layer_of(LayerLoader& from, bool attends, bool has_experts) const;
  DeltaNet load_delta_net(LayerLoader& from) const;
  void load_products(LayerLoader& from, DeltaNet& net) const;
  Attention load_attention(LayerLoader& from) const;
  SharedExpert load_shared_expert(LayerLoader& from) const;

  QwenHybridForm form_;
  std::vector<bool> attends_;  // (n_layers)
  DeltaShape shape_;
  ExpertWeights weights_ = ExpertWeights::softmax_used;
  std::vector<bool> has_experts_;  // (n_layers)
  int shared_dim_ = 0;             // width of the shared expert that every row uses
};

// Qwen3-Next (Qwen team 2025).
class Qwen3Next final : public QwenHybrid {
 public:
  explicit Qwen3Next(const ConfigSource& source);
};

// Qwen3.5 and 3.6, text, dense (Qwen team 2026).
class Qwen35 final : public QwenHybrid {
 public:
  explicit Qwen35(const ConfigSource& source);
};

// Their mixtures of experts.
class Qwen35Moe final : public QwenHybrid {
 public:
  explicit Qwen35Moe(const ConfigSource& source);
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_FAMILIES_RECURRENT_QWEN_HYBRID_H_
