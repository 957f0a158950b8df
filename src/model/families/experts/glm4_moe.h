// SPDX-License-Identifier: Apache-2.0
// GLM-4.5, 4.6 and 4.7 (Zeng et al. 2025, arXiv 2508.06471): attention with partly rotated heads,
// biases and, in the large models, norms of heads; experts as in DeepSeek-V3. And GLM-4.7-Flash,
// which also has DeepSeek's attention.
#ifndef OUTRIDER_MODEL_FAMILIES_EXPERTS_GLM4_MOE_H_
#define OUTRIDER_MODEL_FAMILIES_EXPERTS_GLM4_MOE_H_

#include <optional>
#include <utility>

#include "model/families/experts/deepseek.h"
#include "model/families/experts/routed.h"
#include "model/families/family.h"
#include "model/load/config_source.h"

namespace outrider {

// What these configurations add to ModelConfig.
struct Glm4MoeConfig {
  ModelConfig decoder;
  bool has_head_norms = false;  // for directories; GGUF files have the tensors or not
  RoutedConfig routed;
};

class Glm4Moe final : public Family {
 public:
  explicit Glm4Moe(const ConfigSource& source);
  DecoderLayer load_layer(LayerLoader& from, int layer) const override;
  std::optional<ModuleNames> module_names() const override { return ModuleNames{}; }
  void compose(PassBuilder& pass, const DecoderLayer& layer) const override;

 private:
  explicit Glm4Moe(Glm4MoeConfig config) : Family(config.decoder), own_(std::move(config)) {}

  Glm4MoeConfig own_;
};

// For directories; the architecture of GGUF files is deepseek2.
class Glm4MoeLite final : public DeepSeek {
 public:
  explicit Glm4MoeLite(const ConfigSource& source);
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_FAMILIES_EXPERTS_GLM4_MOE_H_
